"""Taking work from the queue: as much as there are free slots, as soon as somebody says that there is some.

A wake-up may be lost only between a look and the mark "asleep"; therefore the worker marks itself asleep, commits, and
looks once more before it waits (rule 7). How long it waits then depends on how the process learns of work: for ever, or
with polls that back off with jitter. Only whoever is marked is woken, so the mark is set as soon as nothing is
there, and stays until the worker has been up for a while: short work costs no marks, and no moment is without one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence

from tasker.contracts.backoff import BackoffPolicy
from tasker.contracts.clock import Random
from tasker.errors import DatabaseError, MessagingError
from tasker.execution.worker import Worker
from tasker.resilience.outage import Failing
from tasker.services.engine.answers import BacklogAnswer, ClaimAnswer
from tasker.services.engine.calls import Engine
from tasker.services.engine.polling import QueuePoller
from tasker.services.engine.process_registry import ProcessRegistry

FAILED = BackoffPolicy(0.2, 0.2, spread=0.5)
"""Seconds to wait after a look that failed."""
_log = logging.getLogger("tasker.execution")


class Claimer:
    """Claims steps of `namespaces` (a list that may grow) for a worker until it is told to stop.

    `poller` says when to look without an announcement; `release(namespace_ids, slots)` moves held steps into the
    queue when there is room and answers like a claim.
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
    ) -> None:
        self._engine, self._worker, self._random, self._release = engine, worker, random, release
        self._registry, self._on_lost = ProcessRegistry(engine.connection), on_lost
        self._namespaces, self._poller = namespaces, poller
        self._failing, self._draining, self._asleep = Failing("claim", _log), False, False
        self._up_since = 0.0
        """By the loop's clock: when it was last marked, or stopped waiting."""

    def wake(self) -> None:
        """There may be work."""
        self._poller.wake()

    def start_over(self) -> None:
        """Announcements may have been missed: there may be work, and a fail-over may have lost the mark."""
        self._asleep = False
        self._poller.wake()

    def drain(self) -> None:
        """Claim nothing more."""
        self._draining = True
        self._poller.wake()

    async def run(self) -> None:
        """Claim until `drain`."""
        self._asleep = False  # the mark is the incarnation's, which may be a new one
        while not self._draining:
            await self._worker.slots.wait_free()
            self._poller.clear()
            if not self._namespaces:  # a program that has not named a template yet: it wakes us when it does
                await self._poller.wait()
                continue
            try:
                if not await self._look():
                    await self._sleep()
                self._failing.succeeded()
            except (DatabaseError, MessagingError) as error:
                self._failing.failed(error)
                self._on_lost()
                self._worker.forget()  # the server that answers next may have forgotten what this one has said
                await asyncio.sleep(FAILED.pause(0, self._random.random()))

    @property
    def _takes(self) -> bool:
        return not self._draining and self._worker.slots.free > 0

    async def _look(self, *, polled: bool = False) -> bool:
        """One look at the queue. True when something was there, so that looking again pays: not where all of it was
        taken while the worker was marked, since whoever sends more from then on wakes it."""
        if not self._takes:
            return False
        await self._worker.slots.wait_claimable()
        if self._draining:  # told to meanwhile
            return False
        marked = self._asleep
        with self._poller.poll(polled=polled) as poll:
            poll.found, emptied = await self._take()
        if poll.found and self._asleep and self._is_up():
            self._asleep = False
            await self._mark(self._registry.wake)
        return poll.found > 0 and not (emptied and marked and self._asleep)

    def _is_up(self) -> bool:
        """It is busy for longer than a moment, or can take nothing more: waking it is of no use."""
        up = asyncio.get_running_loop().time() - self._up_since
        return not self._takes or up >= self._worker.settings.drowse_ms / 1000

    async def _take(self) -> tuple[int, bool]:
        """Claim, and release held steps where there is room now; how many messages and steps there were, and whether
        nothing is left for certain."""
        answer, emptied = await self._claim()
        if not answer.release:
            return answer.popped, emptied
        backlog = await self._worker.offer(lambda slots: self._release(answer.release, slots))
        return answer.popped + backlog.released, False

    async def _claim(self) -> tuple[ClaimAnswer, bool]:
        """Where messages do not live in the database, they come first, and no more slots are set aside than needed.

        True: fewer were there than asked for, and none of them was put back.
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
        """Nothing there: mark the worker asleep, and only then look again and wait (rule 7).

        Without a free slot there is nothing to wait for here: what is announced then is looked for when one is free.
        """
        self._poller.begin()
        if self._takes and not self._asleep:
            await self._mark(self._registry.sleep)
            self._asleep = True
            if await self._look():
                return
        while self._takes and not await self._wait():
            if await self._look(polled=True):
                return

    async def _wait(self) -> bool:
        """The next pause. True when it was ended by an announcement."""
        woken = await self._poller.wait()
        self._up_since = asyncio.get_running_loop().time()
        return woken

    async def _mark(self, mark: Callable[[str], Awaitable[None]]) -> None:
        await mark(self._worker.identity)
        self._up_since = asyncio.get_running_loop().time()
