"""A child process as its parent sees it: start, ask, stop."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import sys
from typing import Any

from tasker.execution.attempt.wire import HEADER

BOOT = "import json, sys; sys.path[:] = json.loads(sys.argv[2]); import tasker.execution.attempt.child as it; it.main()"
"""What the child runs: it finds modules where its parent does."""

LAST_WORDS = 0.2
"""Seconds in which what a dead child had sent is still read."""


class ChildProcess:
    """One running child, which works on one request at a time. `exited` is done when it has gone."""

    def __init__(
        self, process: asyncio.subprocess.Process, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self.exited = asyncio.ensure_future(process.wait())
        self.exited.add_done_callback(self._hang_up)

    @classmethod
    async def start(cls) -> ChildProcess:
        """Start a child in a session of its own, so that a Ctrl-C at the terminal does not reach it."""
        ours, theirs = socket.socketpair()
        with theirs:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-c", BOOT, str(theirs.fileno()), json.dumps(sys.path)),
                pass_fds=[theirs.fileno()],
                stdin=asyncio.subprocess.DEVNULL,
                start_new_session=True,
            )
        return cls(process, *await asyncio.open_connection(sock=ours))

    @property
    def alive(self) -> bool:
        """False once the child has exited."""
        return self._process.returncode is None

    async def ask(self, message: bytes) -> dict[str, Any]:
        """Send a request and wait for the answer. Raises `EOFError` or `OSError` when the child dies over it."""
        self._writer.write(message)
        size = HEADER.unpack(await self._reader.readexactly(HEADER.size))[0]
        answer: dict[str, Any] = json.loads(await self._reader.readexactly(size))
        return answer

    async def stop(self, grace: float) -> None:
        """SIGTERM to the child and to what it started; SIGKILL when it is still there `grace` seconds later."""
        self._signal(signal.SIGTERM)
        try:
            await asyncio.wait({self.exited}, timeout=grace)
        finally:
            self._signal(signal.SIGKILL)
        await self._gone()

    async def how_it_ended(self, grace: float) -> str:
        """How the child came to its end, for a message. One that hung up but lives is stopped `grace` seconds later."""
        await asyncio.wait({self.exited}, timeout=grace)
        if self.alive:
            await self.stop(grace)
            return "closed its connection"
        await self._gone()
        return _described(self.exited.result())

    async def _gone(self) -> None:
        await asyncio.wait({self.exited})
        self._writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    def _signal(self, number: signal.Signals) -> None:
        if self.alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self._process.pid, number)

    def _hang_up(self, _: asyncio.Future[int]) -> None:
        """A process that the child forked may keep the connection open: end it when the child has gone."""
        asyncio.get_running_loop().call_later(LAST_WORDS, self._writer.transport.abort)


def _described(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    hint = " (the kernel does so when memory runs out)" if -status == signal.SIGKILL else ""
    return f"was killed by {signal.Signals(-status).name}{hint}"
