"""A server whose requests wait until the test answers them: what is under way at the same time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.support.scripted_server import reply

WAIT_SECONDS = 20


@dataclass
class Holding:
    """The bodies of requests in their order: all that came, those that wait for an answer, those that got one."""

    url: str = ""
    came: list[dict[str, Any]] = field(default_factory=list)
    waiting: list[dict[str, Any]] = field(default_factory=list)
    answered: list[dict[str, Any]] = field(default_factory=list)
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)
    answer: Callable[[dict[str, Any]], int | None] = lambda _: None
    """The status of a request; None: it waits."""

    async def until(self, fits: Callable[[], bool]) -> None:
        """Wait until it is so."""
        async with asyncio.timeout(WAIT_SECONDS), self.changed:
            await self.changed.wait_for(fits)

    async def decide(self, answer: Callable[[dict[str, Any]], int | None]) -> None:
        """From now on requests are answered so, those that wait too."""
        async with self.changed:
            self.answer = answer
            self.changed.notify_all()

    async def take(self, body: dict[str, Any]) -> int:
        """The status, once there is one."""
        async with self.changed:
            self.came.append(body)
            self.waiting.append(body)
            self.changed.notify_all()
            try:
                await self.changed.wait_for(lambda: self.answer(body) is not None)
            finally:
                self.waiting.remove(body)
            self.answered.append(body)
            self.changed.notify_all()
            return self.answer(body) or 0


@asynccontextmanager
async def holding_server() -> AsyncIterator[Holding]:
    """It listens on loopback; requests that wait at its end are dropped."""
    held, serving = Holding(), set[asyncio.Task[None]]()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
            length = int(head.partition("content-length:")[2].split("\r\n")[0])
            body = json.loads(await reader.readexactly(length))
            status, left = asyncio.ensure_future(held.take(body)), asyncio.ensure_future(reader.read())
            await asyncio.wait([status, left], return_when=asyncio.FIRST_COMPLETED)
            left.cancel()
            if status.cancel():
                return  # who asked does not wait any more
            writer.write(reply(status.result(), ""))
            await writer.drain()
        except asyncio.IncompleteReadError:
            return  # a connection without a request
        finally:
            writer.close()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(serve(reader, writer))
        serving.add(task)
        task.add_done_callback(serving.discard)

    async with await asyncio.start_server(connected, "127.0.0.1", 0) as listening:
        host, port = listening.sockets[0].getsockname()[:2]
        held.url = f"http://{host}:{port}"
        yield held
        for task in [*serving]:
            task.cancel()
        await asyncio.gather(*serving, return_exceptions=True)
