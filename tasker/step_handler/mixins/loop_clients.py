"""The async clients of one handler, one for each event loop: connections belong to the loop that opened them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx

_Kept = tuple["httpx.AsyncClient", AsyncGenerator[None, None] | None]


class LoopClients:
    """In a thread or a child process each call of an async handler has a loop, and so a client, of its own.

    A client is closed when its loop ends: `asyncio.run` closes the async generators of the loop before it, one of
    which waits for that here.
    """

    def __init__(self) -> None:
        self._kept: dict[asyncio.AbstractEventLoop | None, _Kept] = {}

    def get(self) -> httpx.AsyncClient | None:
        """The one of the running loop, or of no loop where none runs."""
        kept = self._kept.get(_running_loop())
        return kept[0] if kept else None

    def keep(self, client: httpx.AsyncClient) -> None:
        """From here on it is the one of the running loop."""
        loop = _running_loop()
        end = None if loop is None else self._at_its_end(loop, client)
        if end is not None:
            with suppress(StopIteration):
                end.__anext__().send(None)
        for each in list(self._kept):  # other threads keep theirs meanwhile
            if each is not None and each.is_closed():
                self._kept.pop(each, None)  # a loop that ended otherwise: its connections cannot be closed any more
        self._kept[loop] = (client, end)

    async def close(self) -> None:
        """Close the one of the running loop, and one that was made where none ran."""
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
