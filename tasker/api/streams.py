"""Answers that go on: how many there are, and how they end when the server stops."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import TypeVar

T = TypeVar("T")


class Streams:
    """The open streams of a process, at most `limit`."""

    def __init__(self, limit: int) -> None:
        self._limit, self._open = limit, 0
        self._closing = asyncio.Event()

    def enter(self) -> bool:
        """Take the place of one stream, until `leave`; False when there is none."""
        if self._open >= self._limit or self._closing.is_set():
            return False
        self._open += 1
        return True

    def leave(self) -> None:
        """Give the place of one stream back."""
        self._open -= 1

    def close(self) -> None:
        """End all of them, each behind what it sends at the moment."""
        self._closing.set()

    async def through(self, items: AsyncIterator[T]) -> AsyncIterator[T]:
        """The items of one stream, until it ends or all are closed."""
        closing = asyncio.ensure_future(self._closing.wait())
        item: asyncio.Future[T] | None = None
        try:
            while not closing.done():
                item = asyncio.ensure_future(anext(items))
                await asyncio.wait([item, closing], return_when=asyncio.FIRST_COMPLETED)
                if not item.done():
                    return
                try:
                    yield item.result()
                except StopAsyncIteration:
                    return
        finally:
            closing.cancel()
            if item is not None and not item.done():
                item.cancel()
                with suppress(asyncio.CancelledError, StopAsyncIteration):
                    await item
            aclose = getattr(items, "aclose", None)
            if aclose is not None:
                await aclose()
