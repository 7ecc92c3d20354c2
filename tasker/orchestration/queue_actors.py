"""Consumers of the orchestration queues, and their pauses."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

from tasker.clock import BackoffPolicy, Random
from tasker.engine.calls import Engine
from tasker.engine.exchange import CompletingWorker
from tasker.engine.polling import PollPolicy, QueuePoller
from tasker.errors import DatabaseError, MessagingError
from tasker.resilience.outage import Failing

FAILED = BackoffPolicy(0.5, 10.0, spread=0.5)
"""Pauses after failed polls, in seconds."""
DRAIN_SECONDS = 3.0
"""Time that a stop waits for the poll under way; messages of a poll that is cut off are delivered again."""
_log = logging.getLogger("tasker.orchestration")


class MessageInbox(Protocol):
    """Handler of the messages of one queue."""

    async def receive(self, caller: CompletingWorker, limit: int) -> int:
        """Take up to `limit` messages and process them; return how many there were."""
        ...

    def longest_pause(self) -> float:
        """Return the longest pause until the next poll in seconds: no notification announces messages visible again."""
        ...


class QueueActor:
    """Consumer loop of one queue, until drained or cancelled.

    `caller` returns the identity of this process, `poller` decides when to poll without a notification; `batch` is the
    largest number of messages taken at a time.
    """

    def __init__(
        self,
        inbox: MessageInbox,
        caller: Callable[[], CompletingWorker],
        poller: QueuePoller,
        random: Random,
        *,
        batch: int = 500,
    ) -> None:
        self._inbox, self._caller, self._poller, self._random = inbox, caller, poller, random
        self._batch = batch
        self._failing = Failing("queue_poll", _log)
        self._looking = asyncio.Lock()
        self._draining = False

    def wake(self) -> None:
        """Poll soon: there may be messages."""
        self._poller.wake()

    async def drain(self) -> None:
        """Stop polling; return when the poll under way has ended, or after `DRAIN_SECONDS`."""
        self._draining = True
        self._poller.wake()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS), self._looking:
                pass

    async def run(self) -> None:
        """Poll and process messages until `drain`; wait while the queue is empty."""
        polled, failures = False, 0
        while not self._draining:
            self._poller.clear()
            try:
                async with self._looking:
                    received = await self._poll_queue(polled)
            except (DatabaseError, MessagingError) as error:
                self._failing.failed(error)
                # sleep despite notifications: messages given back are delivered again, and brokers count that
                await asyncio.sleep(FAILED.pause(failures, self._random.random()))
                polled, failures = True, failures + 1
                continue
            failures = 0
            self._failing.succeeded()
            if received:
                self._poller.begin()
            polled = not received and not await self._poller.wait(self._inbox.longest_pause())

    async def _poll_queue(self, polled: bool) -> int:
        with self._poller.poll(polled=polled) as poll:
            poll.found = await self._inbox.receive(self._caller(), self._batch)
        return poll.found


class QueuePauses:
    """The known pauses of orchestration queues. Until they are known, nothing is taken.

    Changes arrive by NOTIFY and are then read. Without notifications they come with the answer to each request for a
    sweep turn, over the same `engine`, so that the later answer is the newer one. `changed` is called at each change.
    """

    def __init__(self, engine: Engine, changed: Callable[[], None]) -> None:
        self._engine, self._changed = engine, changed
        self._paused: frozenset[str] | None = None
        self._again = asyncio.Event()

    def is_paused(self, queue: str) -> bool:
        """Return True while no message may be taken from the queue."""
        return self._paused is None or queue in self._paused

    def update(self, answer: Mapping[str, Any]) -> None:
        """Update the pauses from an answer of the database that names the `paused_queues`."""
        paused = frozenset(answer["paused_queues"])
        if paused != self._paused:
            self._paused = paused
            self._changed()

    def recheck(self) -> None:
        self._again.set()

    async def run(self) -> None:
        """Read the pauses at every signal, until cancelled. After a failure the next turn's answer brings them."""
        while True:
            self._again.clear()
            with contextlib.suppress(DatabaseError):
                self.update(await self._engine.read("paused_queues", {}))
            await self._again.wait()


class PausableInbox:
    """Inbox of a queue that can be paused."""

    def __init__(self, inbox: MessageInbox, queue: str, pauses: QueuePauses) -> None:
        self._inbox, self._queue, self._pauses = inbox, queue, pauses

    async def receive(self, caller: CompletingWorker, limit: int) -> int:
        """Receive messages from the inbox, or none while the queue is paused."""
        if self._pauses.is_paused(self._queue):
            return 0
        return await self._inbox.receive(caller, limit)

    def longest_pause(self) -> float:
        return self._inbox.longest_pause()


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

    def recheck(self) -> None:
        """Read the pauses and poll all queues: notifications may have been missed."""
        self.pauses.recheck()
        self.wake()

    async def drain(self) -> None:
        """Stop polling, and return when the polls under way have ended: no message stays hidden."""
        await asyncio.gather(*(actor.drain() for actor in self.actors))
