"""A bound on how many handlers run at once, whose waiters a cancel can wake."""

from __future__ import annotations

import asyncio

from tasker.execution.attempt.cancel import AttemptCancelFlag


class CapacityGate:
    """`size` places. `acquire` waits in order of arrival; `release` gives one back."""

    def __init__(self, size: int) -> None:
        self._places = asyncio.Semaphore(size)
        self.waiting = 0
        """How many wait."""

    @property
    def full(self) -> bool:
        """True when the next one has to wait."""
        return self._places.locked()

    async def acquire(self, flag: AttemptCancelFlag) -> bool:
        """Take a place; False when the attempt was stopped while it waited."""
        if not self.full:
            return await self._places.acquire()
        acquired = await self._wait(flag)
        if acquired and flag.is_set():  # both in the same turn of the loop
            self.release()
        return acquired and not flag.is_set()

    def release(self) -> None:
        """Give a place back."""
        self._places.release()

    async def _wait(self, flag: AttemptCancelFlag) -> bool:
        waiting = asyncio.ensure_future(self._places.acquire())
        flag.wake = lambda _: waiting.cancel()
        self.waiting += 1
        try:
            await asyncio.wait({waiting})
        except asyncio.CancelledError:
            if not waiting.cancel() and not waiting.cancelled():
                self.release()
            raise
        finally:
            self.waiting -= 1
            flag.wake = None
        return not waiting.cancelled()
