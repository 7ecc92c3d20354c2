"""The claimer: takes steps from the queue for a worker, up to its free slots.

A wake-up can be lost between the last poll and the mark "asleep" in the database. The worker therefore marks itself
asleep, commits, and polls once more before it waits (rule 7). It then waits indefinitely or, where the process cannot
rely on wake-ups, polls with back-off and jitter. Only workers that are marked asleep are woken. The worker sets the
mark as soon as a poll is empty, and keeps it until it has been busy for a while: short work writes no marks.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence

from tasker.clock import BackoffPolicy, Random
from tasker.engine.answers import BacklogAnswer, ClaimAnswer
from tasker.engine.calls import Engine
from tasker.engine.polling import QueuePoller
from tasker.engine.process_registry import ProcessRegistry
from tasker.errors import DatabaseError, MessagingError
from tasker.execution.worker import Worker
from tasker.resilience.outage import Failing

PASSED_OVER = BackoffPolicy(0.02, 1.0)
"""Pause, in seconds, while the next steps of an ordered namespace belong to tasks that are locked."""
FAILED = BackoffPolicy(0.2, 0.2, spread=0.5)
"""Pause after a failed poll, in seconds."""
_log = logging.getLogger("tasker.execution")


class Claimer:
    """Claimer of steps of `namespaces` (a list that may grow) for a worker, until it is drained.

    `poller` decides when to poll without a wake-up; `release(namespace_ids, slots)` enqueues steps of the backlog when
    there is room, and returns claims like a claim call. `on_delayed` gets the steps whose messages were sent again,
    with the milliseconds after which they are visible: nothing announces that moment.
    """

    def __init__(
        self,
        engine: Engine,
        worker: Worker,
        namespaces: Sequence[str],
        poller: QueuePoller,
        random: Random,
        release: Callable[[Sequence[int], int], Awaitable[BacklogAnswer]],
        *,
        on_lost: Callable[[], None],
        on_delayed: Callable[[Mapping[str, float]], None] = lambda _: None,
    ) -> None:
        self._engine, self._worker, self._random, self._release = engine, worker, random, release
        self._registry, self._on_lost, self._on_delayed = ProcessRegistry(engine.connection), on_lost, on_delayed
        self._namespaces, self._poller = namespaces, poller
        self._failing, self._draining, self._asleep = Failing("claim", _log), False, False
        self._first: Sequence[int] = ()
        """Namespaces whose backlog the next poll asks before the queue."""
        self._recheck = math.inf
        """Longest pause before the next poll, whatever the poller says."""
        self._up_since = 0.0
        """Time of the event loop when the worker was last marked, or last stopped waiting."""

    def wake(self) -> None:
        """Poll soon: there may be work."""
        self._poller.wake()

    def start_over(self) -> None:
        """Poll soon and set the mark again: wake-ups may have been missed, and a fail-over may have lost the mark."""
        self._asleep = False
        self._poller.wake()

    def drain(self) -> None:
        self._draining = True
        self._poller.wake()

    async def run(self) -> None:
        self._asleep = False  # the mark belongs to the registration, which may be new
        while not self._draining:
            await self._worker.slots.wait_free()
            self._poller.clear()
            if not self._namespaces:  # the program has named no template yet; naming one wakes the claimer
                await self._poller.wait()
                continue
            try:
                if not await self._poll_once():
                    await self._sleep()
                self._failing.succeeded()
            except (DatabaseError, MessagingError) as error:
                self._failing.failed(error)
                self._on_lost()
                self._worker.forget()  # the server that answers next may lack the latest writes of this one
                await asyncio.sleep(FAILED.pause(0, self._random.random()))

    @property
    def _takes(self) -> bool:
        return not self._draining and self._worker.slots.free > 0

    async def _poll_once(self, *, polled: bool = False) -> bool:
        """Poll the queue once; return True when another poll is likely to find work.

        A poll that emptied the queue while the worker was marked asleep returns False: later messages wake the worker.
        """
        if not self._takes:
            return False
        await self._worker.slots.wait_claimable()
        if self._draining:  # drained meanwhile
            return False
        marked = self._asleep
        with self._poller.poll(polled=polled) as poll:
            poll.found, emptied = await self._take()
        if poll.found and self._asleep and self._is_up():
            self._asleep = False
            await self._mark(self._registry.wake)
        return poll.found > 0 and not (emptied and marked and self._asleep)

    def _is_up(self) -> bool:
        """Return True when a wake-up would not help: the worker has been busy for a while, or has no free slot."""
        up = asyncio.get_running_loop().time() - self._up_since
        return not self._takes or up >= self._worker.settings.drowse_ms / 1000

    async def _take(self) -> tuple[int, bool]:
        """Claim steps, and enqueue steps of the backlog where there is room now.

        Returns the number of messages and steps, and whether the queue is certainly empty. If the messages took all
        slots, the backlog comes first the next time: an ordered namespace has nothing else.
        """
        first = 0
        if self._first:
            namespaces, self._first = self._first, ()
            first = (await self._worker.offer(lambda slots: self._release(namespaces, slots))).released
            if first and not self._worker.slots.claimable_slots:
                return first, False
        answer, emptied = await self._claim()
        if answer.later:
            self._on_delayed(answer.later)
        if not answer.release:
            self._recheck = math.inf
            return first + answer.popped, emptied
        if not self._worker.slots.claimable_slots:
            self._first = answer.release
        backlog = await self._worker.offer(lambda slots: self._release(answer.release, slots))
        if backlog.released or not backlog.passed_over:
            self._recheck = math.inf
        else:
            self._recheck = PASSED_OVER.after(self._recheck) if self._recheck < math.inf else PASSED_OVER.first
        return first + answer.popped + backlog.released, False

    async def _claim(self) -> tuple[ClaimAnswer, bool]:
        """Claim steps; return the answer, and whether it has fewer claims than requested and none was put back.

        If messages live outside the database, they are received first, and only as many slots are reserved as needed.
        """
        asked = 0

        async def claim(slots: int) -> ClaimAnswer:
            nonlocal asked
            asked = slots
            return await self._engine.claim(self._args(slots))

        if self._engine.transactional:
            answer = await self._worker.offer(claim, self._worker.slots.claimable_slots)
            return answer, len(answer.claims) == answer.popped < asked
        hints = await self._engine.receive(self._namespaces, self._worker.slots.free)
        answer = await self._worker.offer(
            lambda slots: self._engine.claim_received(self._args(slots), hints), limit=len(hints)
        )
        await self._engine.messaging.ack_messages(answer.taken)
        return answer, False

    def _args(self, slots: int) -> dict[str, object]:
        known = {"known": often} if (often := self._worker.inputs.often) else {}
        return {**self._worker.caller(slots).args(), "namespaces": list(self._namespaces), **known}

    async def _sleep(self) -> None:
        """Mark the worker asleep after an empty poll, then poll again before waiting (rule 7).

        Without a free slot there is nothing to wait for: the worker polls again when a slot is free.
        """
        self._poller.begin()
        if self._takes and not self._asleep:
            await self._mark(self._registry.sleep)
            self._asleep = True
            if await self._poll_once():
                return
        while self._takes and not await self._wait():
            if await self._poll_once(polled=True):
                return

    async def _wait(self) -> bool:
        """Wait for the next poll; return True when a wake-up ended the wait."""
        woken = await self._poller.wait(self._recheck)
        self._up_since = asyncio.get_running_loop().time()
        return woken

    async def _mark(self, mark: Callable[[str], Awaitable[None]]) -> None:
        await mark(self._worker.identity)
        self._up_since = asyncio.get_running_loop().time()
