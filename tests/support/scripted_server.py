"""A server that answers each request as the test says, byte by byte: cuts, proxies, strangers."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Reply = bytes | None
"""What is sent before the connection is closed; None: nothing at all."""


@dataclass
class Scripted:
    """`heard` are the requests, whole, in the order in which they came."""

    url: str = ""
    heard: list[str] = field(default_factory=list)

    def bodies(self) -> list[Any]:
        """The bodies of the requests, which are JSON."""
        return [json.loads(each.partition("\r\n\r\n")[2]) for each in self.heard]


@asynccontextmanager
async def scripted_server(replies: Sequence[Reply], host: str = "127.0.0.1") -> AsyncIterator[Scripted]:
    """A server that gives the replies in turn, the last one again and again."""
    script = Scripted()
    answering: set[asyncio.Task[Any]] = set()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (task := asyncio.current_task()) is not None:
            answering.add(task)
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lengths = [int(line[15:]) for line in head.splitlines() if line.lower().startswith("content-length:")]
            script.heard.append(head + (await reader.readexactly(sum(lengths))).decode())
            writer.write(replies[min(len(script.heard), len(replies)) - 1] or b"")
            await writer.drain()
        finally:
            writer.close()
            await writer.wait_closed()

    listening = await asyncio.start_server(answer, host, 0)
    host, port = listening.sockets[0].getsockname()[:2]
    script.url = f"http://{host}:{port}"
    async with listening:
        yield script
    if answering:  # a client in a thread may be done before its connection is closed here
        await asyncio.wait(answering, timeout=1)


def reply(status: int, body: Any, kind: str = "application/json", **headers: str) -> bytes:
    """An answer; a body that is no text is sent as JSON."""
    content = (body if isinstance(body, str) else json.dumps(body)).encode()
    more = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    head = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(content)}\r\n{more}"
    return f"{head}connection: close\r\n\r\n".encode() + content


def refusal(status: int, code: str, detail: str = "refused", **more: Any) -> bytes:
    """A problem as Tasker answers it."""
    headers = {"Retry-After": str(more.pop("retry_after"))} if "retry_after" in more else {}
    return reply(status, {"code": code, "detail": detail, **more}, "application/problem+json", **headers)
