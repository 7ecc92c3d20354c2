"""Pool of child processes for handlers, with a limit of memory.

Threads and numerical libraries reserve many more addresses than they use, so a kernel limit on addresses would stop
handlers that need little memory.
"""

from __future__ import annotations

import asyncio
import itertools
import subprocess
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from tasker.execution.attempt.attempt import Attempt, Ending
from tasker.execution.attempt.capacity import CapacityWaits, HandlerCapacity
from tasker.execution.attempt.settle import crashed, not_in_process, over_memory, timed_out
from tasker.execution.modes.asking import answer_question
from tasker.execution.modes.subprocess import Subprocess
from tasker.execution.modes.wire import CallId, NotAFrame, call_id, ending_from, frame, request
from tasker.handlers.claims import Failure
from tasker.handlers.registry.invocation import ResolvedHandler

CHECK_SECONDS = 0.1


async def exceeded(pid: int, limit_mb: int) -> int:
    """Return once the process exceeds the limit; the return value is its resident memory in MB.

    The kernel's peak value covers the whole life of the process, which has run other steps before.
    """
    while (held := resident_mb(pid)) <= limit_mb:
        await asyncio.sleep(CHECK_SECONDS)
    return held


def resident_mb(pid: int) -> int:
    """Return the resident memory of the process in MB (1024 * 1024 bytes), or 0 if it has ended."""
    with suppress(OSError):
        return _of_linux(Path(f"/proc/{pid}/status").read_text("ascii", "replace"))
    with suppress(OSError, ValueError):
        completed = subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], capture_output=True, text=True)
        return int(completed.stdout) // 1024
    return 0


def _of_linux(status: str) -> int:
    lines = (line.split() for line in status.splitlines())
    return next((int(words[1]) // 1024 for words in lines if words[0] == "VmRSS:"), 0)


HINT = "there are as many as the machine has processors: start workers on further machines"

CONTENT = "what is in the object that was registered or resolved exists in this process only"
FOR_CONTENT = "register or resolve its class, or give the step `execution: {mode: thread}`"

UNNAMED = "no name in its module leads to it, so a child process would run something else or nothing"
FOR_UNNAMED = (
    "give it a name of its own in the module that its `__module__` names, or give the step `execution: {mode: thread}`"
)


class SubprocessExecutor:
    """Pool of at most `size` child processes for handlers, started on demand and reused.

    Parameters: `kill_grace` is the number of seconds between SIGTERM and SIGKILL; `waits` says how long steps wait for
    a child.
    """

    def __init__(self, size: int, kill_grace: float, waits: CapacityWaits) -> None:
        self.places = HandlerCapacity(size, "process", HINT, waits)
        self._idle: list[Subprocess] = []
        self._numbers = itertools.count(1)
        self._going: set[asyncio.Task[None]] = set()
        self._kill_grace = kill_grace

    async def run(self, attempt: Attempt, handler: ResolvedHandler, limit: float) -> Ending:
        """Run a handler in a child for at most `limit` seconds; the cancel flag stops the child."""
        if not handler.source.loadable:
            return _unreachable(handler)
        if not handler.made_here:
            return not_in_process(handler.name, CONTENT, FOR_CONTENT)
        if not await self.places.take(attempt, limit):
            return timed_out(limit, handler.name)
        attempt.cancel.began = True
        try:
            return await self._in_child(attempt, handler, limit)
        finally:
            self.places.release()

    async def close(self) -> None:
        """Stop the idle children and wait until abandoned children have ended."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*(child.stop(self._kill_grace) for child in idle), *self._going)

    async def _in_child(self, attempt: Attempt, handler: ResolvedHandler, limit: float) -> Ending:
        call = call_id(attempt, next(self._numbers))
        child = await self._child(attempt.step.memory_mb)
        if attempt.cancel.is_set():  # set while the child was starting
            self._idle.append(child)
            return timed_out(limit, handler.name)
        request, answers = self._request(call, attempt, handler, child), partial(answer_question, attempt)
        asking = asyncio.ensure_future(child.ask(call, request, attempt.reporter, answers))
        growing = _watched(child, attempt.step.memory_mb)
        attempt.cancel.wake = lambda _: asking.cancel()
        try:
            await asyncio.wait({asking, *growing}, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            asking.cancel()
            self._abandon(child)
            raise
        finally:
            attempt.cancel.wake = None
            peaks = [watcher.result() for watcher in growing if not watcher.cancel()]
        if asking.done() and not asking.cancelled():
            return await self._answered(attempt, handler, child, asking)
        asking.cancel()
        await child.stop(0 if peaks else self._kill_grace)
        for peak in peaks:
            return over_memory(attempt.step.memory_mb or 0, peak, handler.name)
        return timed_out(limit, handler.name, "; its process was stopped")

    def _request(self, call: CallId, attempt: Attempt, handler: ResolvedHandler, child: Subprocess) -> bytes:
        try:
            return frame(request(call, attempt, handler, child.sent))
        except BaseException:  # otherwise the child would be lost, or asked about values that it was never sent
            self._abandon(child)
            raise

    async def _answered(
        self, attempt: Attempt, handler: ResolvedHandler, child: Subprocess, asking: asyncio.Future[dict[str, Any]]
    ) -> Ending:
        try:
            answer = asking.result()
        except (EOFError, OSError, NotAFrame):
            return crashed(await child.how_it_ended(self._kill_grace), attempt.step, handler.name)
        self._idle.append(child)
        return ending_from(answer)

    def _abandon(self, child: Subprocess) -> None:
        going = asyncio.ensure_future(child.stop(0))
        self._going.add(going)
        going.add_done_callback(self._going.discard)

    async def _child(self, memory_mb: int | None) -> Subprocess:
        """Return an idle child or start one; a child that already uses half of `memory_mb` is replaced."""
        while self._idle:
            child = self._idle.pop()
            if child.sound and (memory_mb is None or resident_mb(child.pid) < memory_mb / 2):
                return child
            self._abandon(child)
        return await Subprocess.start()


def _unreachable(handler: ResolvedHandler) -> Failure:
    if handler.source.local:
        return not_in_process(handler.name, "its code exists in this process only")
    return not_in_process(handler.name, UNNAMED, FOR_UNNAMED)


def _watched(child: Subprocess, memory_mb: int | None) -> list[asyncio.Task[int]]:
    """Return a list with a task that is done once the child exceeds `memory_mb`; empty without a limit."""
    return [] if memory_mb is None else [asyncio.ensure_future(exceeded(child.pid, memory_mb))]
