"""A bound on concurrent handlers whose waiters can be cancelled."""

from __future__ import annotations

import asyncio

from tasker.execution.attempt.cancel import AttemptCancelFlag


class CapacityGate:
    """Gate of `size` slots. `acquire` waits in order of arrival; `release` frees one."""

    def __init__(self, size: int) -> None:
        self._places = asyncio.Semaphore(size)
        self.waiting = 0
        """Number of waiters."""

    @property
    def full(self) -> bool:
        """Return True when the next caller has to wait."""
        return self._places.locked()

    async def acquire(self, flag: AttemptCancelFlag) -> bool:
        """Take a slot; return False when the attempt was stopped while it waited."""
        if not self.full:
            return await self._places.acquire()
        acquired = await self._wait(flag)
        if acquired and flag.is_set():  # both in the same turn of the loop
            self.release()
        return acquired and not flag.is_set()

    def release(self) -> None:
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
