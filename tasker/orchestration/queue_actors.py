"""The actors of one process, with the pauses of their queues."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from tasker.contracts.clock import Random
from tasker.orchestration.consuming import MessageInbox, QueueActor
from tasker.orchestration.queue_pauses import PausableInbox, QueuePauses
from tasker.services.engine.calls import Engine
from tasker.services.engine.exchange import CompletingWorker
from tasker.services.engine.polling import PollPolicy, QueuePoller


class QueueActors:
    """One actor for each of the `inboxes`, by the names of their queues; there may be none.

    `engine` is asked for the pauses, `caller` says who this process is, `policy` how long to wait without an
    announcement.
    """

    def __init__(
        self,
        inboxes: Mapping[str, MessageInbox],
        engine: Engine,
        caller: Callable[[], CompletingWorker],
        policy: PollPolicy,
        random: Random,
    ) -> None:
        pollers = {queue: QueuePoller(policy, random) for queue in inboxes}
        self._pollers = list(pollers.values())
        self.pauses = QueuePauses(engine, self.wake)
        self.actors = [
            QueueActor(PausableInbox(inbox, queue, self.pauses), caller, pollers[queue], random)
            for queue, inbox in inboxes.items()
        ]

    def services(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """What runs while the process does: none without an actor."""
        return [self.pauses.run, *(actor.run for actor in self.actors)] if self.actors else []

    def wake(self) -> None:
        """There may be messages in any of the queues."""
        for poller in self._pollers:
            poller.wake()

    def look_again(self) -> None:
        """Announcements may have been missed: of messages, and of pauses."""
        self.pauses.look_again()
        self.wake()

    async def drain(self) -> None:
        """Poll no more, and return when what is under way has ended: no message stays hidden."""
        await asyncio.gather(*(actor.drain() for actor in self.actors))
