"""A server that takes connections and never says a word."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Silent:
    """`asked` is set with the first connection; `port` is on this machine."""

    def __init__(self) -> None:
        self.asked = asyncio.Event()
        self.port = 0
        self._writers: list[asyncio.StreamWriter] = []

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Keep the connection, read what comes."""
        self._writers.append(writer)
        self.asked.set()
        while await reader.read(65536):
            pass

    def end(self) -> None:
        """Cut every connection. A stream that outlives its loop would fail whichever test runs then."""
        for writer in self._writers:
            writer.transport.abort()


@asynccontextmanager
async def silent_server() -> AsyncIterator[Silent]:
    """A silent server, closed at the end with all its connections."""
    silent = Silent()
    server = await asyncio.start_server(silent.connected, "127.0.0.1", 0)
    silent.port = server.sockets[0].getsockname()[1]
    try:
        yield silent
    finally:
        server.close()
        silent.end()
        await asyncio.sleep(0)  # an aborted transport closes its socket in the loop's next turn
