"""The actors of an orchestrator, one per queue: woken by notifications, otherwise polling with back-off."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from typing import Protocol

from tasker.contracts.backoff import BackoffPolicy
from tasker.contracts.clock import Random
from tasker.errors import DatabaseError, MessagingError
from tasker.resilience.outage import Failing
from tasker.services.engine.exchange import CompletingWorker
from tasker.services.engine.polling import QueuePoller

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
                    found = await self._look(polled)
            except (DatabaseError, MessagingError) as error:
                self._failing.failed(error)
                # sleep despite notifications: messages given back are delivered again, and brokers count that
                await asyncio.sleep(FAILED.pause(failures, self._random.random()))
                polled, failures = True, failures + 1
                continue
            failures = 0
            self._failing.succeeded()
            if found:
                self._poller.begin()
            polled = not found and not await self._poller.wait(self._inbox.longest_pause())

    async def _look(self, polled: bool) -> int:
        with self._poller.poll(polled=polled) as poll:
            poll.found = await self._inbox.receive(self._caller(), self._batch)
        return poll.found
