"""Window of events handled concurrently, and the position up to which all of them are handled."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable


class InFlightWindow:
    """Positions from the oldest unhandled event on, open or closed: at most `ahead`.

    `settle` is called with a position up to which all events are handled: one call at a time, each further than the
    last.
    """

    def __init__(self, begin: int, ahead: int, settle: Callable[[int], Awaitable[None]]) -> None:
        self._room, self._settle, self._settling = asyncio.Semaphore(ahead), settle, asyncio.Lock()
        self._order, self._closed = deque[int](), set[int]()
        self._reached = self._settled = begin

    async def open(self, position: int) -> None:
        """Add a position, further than all before; waits while the window is full."""
        await self._room.acquire()
        self._order.append(position)

    async def close(self, position: int) -> None:
        """Mark a position as handled.

        Returns once it is settled or older ones are still open. Raises the errors of `settle`.
        """
        self._closed.add(position)
        while self._order and self._order[0] in self._closed:
            self._reached = self._order.popleft()
            self._closed.remove(self._reached)
            self._room.release()
        async with self._settling:
            if (reached := self._reached) > self._settled:
                await self._settle(reached)
                self._settled = reached
