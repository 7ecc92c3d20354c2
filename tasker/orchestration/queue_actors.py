"""The queue actors of one process, with the pauses of their queues."""

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
    """One actor for each of the `inboxes`, by queue name; there may be none.

    `engine` reads the pauses, `caller` returns the identity of this process, `policy` decides how long to wait without
    a notification.
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
        """Return the services that run while the process does: none without an actor."""
        return [self.pauses.run, *(actor.run for actor in self.actors)] if self.actors else []

    def wake(self) -> None:
        """Poll all queues soon: there may be messages."""
        for poller in self._pollers:
            poller.wake()

    def look_again(self) -> None:
        """Read the pauses and poll all queues: notifications may have been missed."""
        self.pauses.look_again()
        self.wake()

    async def drain(self) -> None:
        """Stop polling, and return when the polls under way have ended: no message stays hidden."""
        await asyncio.gather(*(actor.drain() for actor in self.actors))
