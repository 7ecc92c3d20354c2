"""The parent's side of a child process: start it, send requests, stop it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable
from typing import Any, TypeAlias

from tasker.execution.attempt import listeners
from tasker.execution.fast.shared_values import SharedValueSender
from tasker.execution.modes.asking import too_late
from tasker.execution.modes.wire import (
    ASK,
    HEADER,
    STOP,
    CallId,
    NotAFrame,
    frame,
    importable,
    length_of_answer,
    parsed,
    report_from,
)
from tasker.logging.current_step import LogLine, ProgressReport, Reporter

BOOT = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[2]);"
    " from tasker.execution.modes.subprocess_main import main; main()"
)
"""Program of the child, which imports modules from the same paths as its parent."""

Answer: TypeAlias = Callable[[dict[str, Any]], Awaitable[dict[str, Any]]]
"""Does what a child asks for in a message, and returns the answer."""

LAST_WORDS = 0.2
"""Seconds during which data sent by a dead child is still read."""

NO_ANSWER = "wrote something else than an answer to the connection to its worker"


class Subprocess:
    """A running child, which works on one request at a time. `exited` is done when the process has exited."""

    def __init__(
        self, process: subprocess.Popen[bytes], reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.sent = SharedValueSender()
        self._process = process
        self._reader = reader
        self._writer = writer
        self._call: CallId | None = None
        self._answer: asyncio.Future[dict[str, Any]] = asyncio.get_running_loop().create_future()
        self._reporter: Reporter | None = None
        self._answers: Answer | None = None
        self._answering = set[asyncio.Task[None]]()
        self._strange = False
        self._listening = asyncio.ensure_future(self._listen())
        self._listening.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
        self.exited = _exit_of(process)
        self.exited.add_done_callback(self._hang_up)

    @classmethod
    async def start(cls) -> Subprocess:
        """Start a child in a session of its own, so that a Ctrl-C at the terminal does not reach it."""
        parent_socket, child_socket = socket.socketpair()
        with child_socket:
            child_socket.setblocking(
                True
            )  # `socket.setdefaulttimeout` of a user's module makes new sockets non-blocking
            process = subprocess.Popen(
                [sys.executable, "-c", BOOT, str(child_socket.fileno()), json.dumps(importable()), str(os.getpid())],
                pass_fds=[child_socket.fileno()],
                stdin=subprocess.DEVNULL,
                start_new_session=True,
            )
        return cls(process, *await asyncio.open_connection(sock=parent_socket))

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.returncode is None

    @property
    def sound(self) -> bool:
        """Return True while the child accepts requests: it is alive and has sent only answers to requests."""
        return self.alive and not self._strange and not self._listening.done()

    async def ask(
        self,
        call: CallId,
        message: bytes,
        reporter: Reporter | None = None,
        answers: Answer | None = None,
    ) -> dict[str, Any]:
        """Send a request and wait for its answer; output of the handler meanwhile goes to `reporter`.

        `answers` does what the handler asks for meanwhile, and returns the answer to the child.

        Raises `EOFError` or `OSError` when the child dies meanwhile, `NotAFrame` when it sends invalid data.
        """
        self._call, self._answer = call, asyncio.get_running_loop().create_future()
        self._reporter, self._answers = reporter, answers
        self._writer.write(message)
        either: set[asyncio.Future[Any]] = {self._answer, self._listening}
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        if not self._answer.done():
            self._listening.result()
        return self._answer.result()

    async def stop(self, grace: float) -> None:
        """Send SIGTERM to the child and its subprocesses, and SIGKILL to those that still run `grace` seconds later."""
        self._signal(signal.SIGTERM)
        if grace and not self._writer.is_closing():
            self._writer.write(frame(STOP))  # the child makes sure that its main thread notices the signal
        try:
            await asyncio.wait({self.exited}, timeout=grace)
        finally:
            self._signal(signal.SIGKILL)
        await self._gone()

    async def how_it_ended(self, grace: float) -> str:
        """Describe how the child ended, for a message.

        A child that closed its connection but lives is stopped after `grace` seconds.
        """
        if isinstance(self._listening.exception(), NotAFrame):
            await self.stop(grace)
            return NO_ANSWER
        await asyncio.wait({self.exited}, timeout=grace)
        if self.alive:
            await self.stop(grace)
            return "closed its connection"
        await self._gone()
        return _described(self.exited.result())

    async def _listen(self) -> None:
        """Read frames from the child while they are valid answers; always ends by raising."""
        while True:
            length = length_of_answer(await self._reader.readexactly(HEADER.size))
            call, answer = parsed(await self._reader.readexactly(length))
            if (report := report_from(answer)) is not None:
                self._forward(call, report)
            elif answer.get("type") == ASK:
                self._begin_answer(call, answer)
            elif call == self._call and not self._answer.done():
                self._reporter = self._answers = None
                self._answer.set_result(answer)
            else:
                self._strange = True
                listeners.warning("subprocess_replaced", None, pid=self._process.pid, answered=call, asked=self._call)

    def _forward(self, call: CallId, report: LogLine | ProgressReport) -> None:
        """Pass output on, unless its call is over: a thread that was left behind may still send."""
        if call == self._call and self._reporter is not None:
            self._reporter.log(report) if isinstance(report, LogLine) else self._reporter.progress(report)

    def _begin_answer(self, call: CallId, message: dict[str, Any]) -> None:
        """Do what the handler asks for, beside its other questions, unless its call is over."""
        task = asyncio.ensure_future(self._answer_question(self._answers if call == self._call else None, message))
        self._answering.add(task)
        task.add_done_callback(self._answering.discard)

    async def _answer_question(self, answers: Answer | None, message: dict[str, Any]) -> None:
        answer = await answers(message) if answers is not None else too_late(message)
        if not self._writer.is_closing():
            self._writer.write(frame(answer))

    async def _gone(self) -> None:
        await asyncio.wait({self.exited})
        self._writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()
        await asyncio.wait({self._listening})

    def _signal(self, number: signal.Signals) -> None:
        if self.alive:
            self._signal_group(number)

    def _signal_group(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, number)

    def _hang_up(self, _: asyncio.Future[int]) -> None:
        """Kill what the child started, and close the connection, which a process outside the session may keep open."""
        self._signal_group(signal.SIGKILL)
        asyncio.get_running_loop().call_later(LAST_WORDS, self._writer.transport.abort)


def _exit_of(process: subprocess.Popen[bytes]) -> asyncio.Future[int]:
    """Return a future of the exit status. asyncio would need a child watcher, which not every event loop policy has."""
    loop = asyncio.get_running_loop()
    exited: asyncio.Future[int] = loop.create_future()

    def wait() -> None:
        status = process.wait()
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(_set, exited, status)

    threading.Thread(target=wait, name=f"child-{process.pid}", daemon=True).start()
    return exited


def _set(exited: asyncio.Future[int], status: int) -> None:
    if not exited.done():
        exited.set_result(status)


def _described(status: int) -> str:
    if status >= 0:
        return f"exited with status {status}"
    hint = " (the kernel does so when memory runs out)" if -status == signal.SIGKILL else ""
    return f"was killed by {_name_of(-status)}{hint}"


def _name_of(number: int) -> str:
    """Return the name of the signal; real-time signals between the first and the last have none."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
