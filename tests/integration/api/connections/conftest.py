"""A server with tight limits in front of a small application."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, NamedTuple

import pytest_asyncio
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.types import Receive, Scope, Send

from tasker.server.connection_limits import ConnectionLimits
from tasker.server.envelope import Envelope, RequestLimits
from tasker.server.sockets import HttpServer, listen
from tests.support.waiting import LIMIT_SECONDS

HOST = b"Host: localhost\r\n"
GET = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
BODY_BYTES = 10_000


class Answer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def problem(self) -> Any:
        assert self.headers["content-type"] == "application/problem+json"
        return json.loads(self.body)


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def answer(self) -> Answer:
        head = (await self._within(self._reader.readuntil(b"\r\n\r\n"))).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        body = await self._within(self._reader.readexactly(int(headers["content-length"])))
        return Answer(int(first.split()[1]), headers, body)

    async def rest(self) -> bytes:
        """What comes until the server closes."""
        try:
            return bytes(await self._within(self._reader.read()))
        except ConnectionError:
            return b""

    async def _within(self, reading: Any) -> Any:
        return await asyncio.wait_for(reading, LIMIT_SECONDS)


async def small(scope: Scope, receive: Receive, send: Send) -> None:
    """Answer with the size of the body, after an answer of `?bytes=` characters."""
    request = Request(scope, receive)
    read = len(await request.body())
    size = int(request.query_params.get("bytes", 0))
    await PlainTextResponse("x" * size if size else f"read {read}")(scope, receive, send)


Serve = Callable[..., Any]


class Served:
    """A server, and connections to it."""

    def __init__(self, server: HttpServer) -> None:
        self.server = server

    @asynccontextmanager
    async def client(self, address: str = "127.0.0.1") -> AsyncIterator[Client]:
        host, port = self.server.address.removeprefix("http://").split(":")
        reader, writer = await asyncio.open_connection(host, int(port), local_addr=(address, 0))
        try:
            yield Client(reader, writer)
        finally:
            writer.transport.abort()

    async def ask(self, data: bytes) -> tuple[Answer, bytes]:
        """One answer on a connection of its own, and what else comes until the server closes it."""
        async with self.client() as client:
            await client.send(data)
            return await client.answer(), await client.rest()


@pytest_asyncio.fixture(loop_scope="module")
async def serve() -> AsyncIterator[Serve]:
    async with AsyncExitStack() as stack:

        async def started(seconds: float = 30, **limits: Any) -> Served:
            interface = Envelope(small, RequestLimits(body_bytes=BODY_BYTES, seconds=seconds), lambda: None)
            server = HttpServer(interface, listen("127.0.0.1", 0), grace_seconds=1, limits=ConnectionLimits(**limits))
            await server.start()
            stack.push_async_callback(server.stop)
            return Served(server)

        yield started


def unconnected(number: int) -> list[socket.socket]:
    """So many sockets of clients, not blocking."""
    made = [socket.socket() for _ in range(number)]
    for each in made:
        each.setblocking(False)
    return made
