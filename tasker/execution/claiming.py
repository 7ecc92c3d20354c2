"""Taking work from the queue: as much as there are free slots, as soon as somebody says that there is some.

A wake-up may be lost only between a look and the mark "asleep"; therefore the worker marks itself asleep, commits, and
looks once more before it waits (rule 7). Below that a poll with back-off and jitter remains.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Sequence

from tasker.contracts.clock import Random
from tasker.errors import DatabaseError, MessagingError
from tasker.execution.worker import Worker
from tasker.services.engine import Answer, Engine

BACKOFF_SECONDS = 0.2


class Claimer:
    """Claims steps of `namespaces` (a list that may grow) for a worker until it is told to stop.

    `release(namespace_ids, slots)` moves held steps into the queue when there is room and answers like a claim.
    """

    def __init__(
        self,
        engine: Engine,
        worker: Worker,
        namespaces: Sequence[str],
        random: Random,
        release: Callable[[Sequence[int], int], Awaitable[Answer]],
        *,
        on_lost: Callable[[], None],
    ) -> None:
        self._engine, self._worker, self._random, self._release = engine, worker, random, release
        self._on_lost = on_lost
        self._namespaces = namespaces
        self._event = asyncio.Event()
        self._draining = False
        self._asleep = False

    def wake(self) -> None:
        """There may be work."""
        self._event.set()

    def drain(self) -> None:
        """Claim nothing more."""
        self._draining = True
        self._event.set()

    async def run(self) -> None:
        """Claim until `drain`."""
        while not self._draining:
            await self._worker.slots.wait_free()
            self._event.clear()
            try:
                if not await self._look() and not self._draining:
                    await self._rest()
            except (DatabaseError, MessagingError):
                self._on_lost()
                await asyncio.sleep(BACKOFF_SECONDS * (0.5 + self._random.random()))

    async def _look(self) -> bool:
        """One look at the queue. True when something was there, so that looking again pays."""
        if self._draining or not self._worker.slots.free:
            return False
        answer = await self._claim()
        found = int(answer.get("popped") or 0)
        if namespace_ids := answer.get("release"):
            answer = await self._worker.offer(lambda slots: self._release(namespace_ids, slots))
            found += int(answer.get("released") or 0)
        if found and self._asleep:
            self._asleep = False
            await self._mark("wake")
        return found > 0

    async def _claim(self) -> Answer:
        """Where messages do not live in the database, they come first, and no more slots are set aside than needed."""
        if self._engine.transactional:
            return await self._worker.offer(lambda slots: self._engine.claim(self._args(slots)))
        hints = await self._engine.receive(self._namespaces, self._worker.slots.free)
        return await self._worker.offer(
            lambda slots: self._engine.claim_received(self._args(slots), hints), limit=len(hints)
        )

    def _args(self, slots: int) -> dict[str, object]:
        worker = self._worker
        return {
            "worker": worker.identity,
            "slots": slots,
            "namespaces": list(self._namespaces),
            "namespace_ids": worker.namespace_ids,
            "unserved": sorted(worker.unserved),
            "window": worker.settings.window,
            "timeout_ms": worker.settings.timeout_ms,
            "grace_ms": worker.settings.grace_ms,
        }

    async def _rest(self) -> None:
        """Nothing there: doze, then mark the worker asleep, and only then look again and wait (rule 7)."""
        pause = self._worker.settings.drowse_ms / 1000
        while not await self._woken(pause * (0.75 + 0.5 * self._random.random())) and not self._draining:
            if not self._asleep:
                self._asleep = True
                await self._mark("sleep")
            if await self._look():
                return
            pause = min(pause * 2, self._worker.settings.poll_ms / 1000)

    async def _woken(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()
        return self._event.is_set()

    async def _mark(self, action: str) -> None:
        await self._engine.read("worker", {"action": action, "worker": self._worker.identity, "lease_ms": 0})
