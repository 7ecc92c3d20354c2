"""A network that swallows: a relay to a database that, from any moment on, passes on nothing more, without a word."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from psycopg.conninfo import conninfo_to_dict


class Relay:
    """Clears `passes` to swallow; the connections stay open. `url` is the database behind it."""

    def __init__(self, upstream: str) -> None:
        self._upstream = conninfo_to_dict(upstream)
        self.passes = asyncio.Event()
        self.passes.set()
        self._pumps: set[asyncio.Task[None]] = set()
        self._writers: list[asyncio.StreamWriter] = []
        self.url = ""

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Pass on what comes, in both directions."""
        host, port = str(self._upstream["host"]), int(self._upstream.get("port") or 5432)
        if host.startswith("/"):
            ahead, behind = await asyncio.open_unix_connection(f"{host}/.s.PGSQL.{port}")
        else:
            ahead, behind = await asyncio.open_connection(host, port)
        self._writers += [behind, writer]
        for source, target in ((reader, behind), (ahead, writer)):
            pump = asyncio.create_task(self._pump(source, target))
            self._pumps.add(pump)
            pump.add_done_callback(self._pumps.discard)

    async def _pump(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        try:
            while data := await source.read(65536):
                await self.passes.wait()
                target.write(data)
        finally:
            target.close()

    async def end(self) -> None:
        """Close every connection, here and now: a stream that outlives its loop would fail whichever test runs then."""
        for writer in self._writers:
            writer.transport.abort()
        for pump in self._pumps:
            pump.cancel()
        await asyncio.gather(*self._pumps, return_exceptions=True)


@asynccontextmanager
async def relay(database_url: str) -> AsyncIterator[Relay]:
    """A relay on a port of its own."""
    made, parts = Relay(database_url), conninfo_to_dict(database_url)
    server = await asyncio.start_server(made.connected, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    user = f"{parts['user']}:{parts['password']}" if "password" in parts else parts["user"]
    made.url = f"postgresql://{user}@127.0.0.1:{port}/{parts['dbname']}"
    try:
        yield made
    finally:
        server.close()
        await made.end()
