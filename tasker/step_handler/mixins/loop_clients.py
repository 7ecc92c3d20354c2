"""Async clients of one handler, one per event loop, because connections belong to the loop that opened them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

_Kept = tuple["httpx.AsyncClient", AsyncGenerator[None, None] | None]


class LoopClients:
    """Clients by event loop: in a thread or a child process each call of an async handler runs in a loop of its own.

    A client is closed when its loop ends: `asyncio.run` closes the loop's async generators first, and one of them waits
    here to close the client.
    """

    def __init__(self) -> None:
        self._kept: dict[asyncio.AbstractEventLoop | None, _Kept] = {}

    def get(self) -> httpx.AsyncClient | None:
        """Return the client of the running loop, or the one made outside a loop if none runs; None if there is none."""
        kept = self._kept.get(_running_loop())
        return kept[0] if kept else None

    def keep(self, client: httpx.AsyncClient) -> None:
        """Store the client for the running loop."""
        loop = _running_loop()
        end = None if loop is None else self._at_its_end(loop, client)
        if end is not None:
            with suppress(StopIteration):
                end.__anext__().send(None)
        for each in list(self._kept):  # a copy, because other threads may add their clients meanwhile
            if each is not None and each.is_closed():
                # a loop that ended without closing its generators: its connections can no longer be closed
                self._kept.pop(each, None)
        self._kept[loop] = (client, end)

    async def close(self) -> None:
        """Close the client of the running loop, and the one made outside a loop."""
        for loop in (_running_loop(), None):
            if kept := self._kept.pop(loop, None):
                client, end = kept
                await (client.aclose() if end is None else end.aclose())

    async def _at_its_end(
        self, loop: asyncio.AbstractEventLoop, client: httpx.AsyncClient
    ) -> AsyncGenerator[None, None]:
        try:
            yield
        finally:
            if (kept := self._kept.get(loop)) and kept[0] is client:
                self._kept.pop(loop, None)
            await client.aclose()


def _running_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None
