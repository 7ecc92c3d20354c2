"""Handlers in child processes: for work that holds the interpreter, may crash, or must be stoppable."""

from __future__ import annotations

import asyncio
from typing import Any

from tasker.execution.attempt.child_process import ChildProcess
from tasker.execution.attempt.outcome import crashed, not_in_process, timed_out
from tasker.execution.attempt.placing import Places, Waits
from tasker.execution.attempt.values import Attempt, Ending
from tasker.execution.attempt.wire import ending_from, frame, request
from tasker.registry.invocation import ResolvedHandler

HINT = "there are as many as the machine has processors: start workers on further machines"


class ProcessMode:
    """Runs handlers in at most `size` child processes, started when needed and used again.

    Parameters: `kill_grace` is how many seconds a child has between SIGTERM and SIGKILL; `waits` says how steps wait
    for a child.
    """

    def __init__(self, size: int, kill_grace: float, waits: Waits) -> None:
        self.places = Places(size, "process", HINT, waits)
        self._idle: list[ChildProcess] = []
        self._going: set[asyncio.Task[None]] = set()
        self._kill_grace = kill_grace

    async def run(self, attempt: Attempt, handler: ResolvedHandler, limit: float) -> Ending:
        """Run a handler in a child for at most `limit` seconds; the cancel flag stops the child."""
        if not handler.source.loadable:
            return not_in_process(handler.name, "its code exists in this process only")
        if not await self.places.take(attempt, limit):
            return timed_out(limit, handler.name)
        try:
            return await self._in_child(attempt, handler, limit)
        finally:
            self.places.release()

    async def close(self) -> None:
        """Stop the idle children, and see the abandoned ones off."""
        idle, self._idle = self._idle, []
        await asyncio.gather(*(child.stop(self._kill_grace) for child in idle), *self._going)

    async def _in_child(self, attempt: Attempt, handler: ResolvedHandler, limit: float) -> Ending:
        message = frame(request(attempt, handler))
        child = await self._child()
        if attempt.cancel.is_set():  # while the child was starting
            self._idle.append(child)
            return timed_out(limit, handler.name)
        asking = asyncio.ensure_future(child.ask(message))
        attempt.cancel.wake = lambda _: asking.cancel()
        try:
            await asyncio.wait({asking}, timeout=limit)
        except asyncio.CancelledError:
            asking.cancel()
            self._abandon(child)
            raise
        finally:
            attempt.cancel.wake = None
        if not asking.done() or asking.cancelled():
            asking.cancel()
            await child.stop(self._kill_grace)
            return timed_out(limit, handler.name, "; its process was stopped")
        return await self._answered(attempt, handler, child, asking)

    async def _answered(
        self, attempt: Attempt, handler: ResolvedHandler, child: ChildProcess, asking: asyncio.Future[dict[str, Any]]
    ) -> Ending:
        try:
            answer = asking.result()
        except (EOFError, OSError):
            return crashed(await child.how_it_ended(self._kill_grace), attempt.step, handler.name)
        self._idle.append(child)
        return ending_from(answer)

    def _abandon(self, child: ChildProcess) -> None:
        """Kill a child that nobody can wait for here."""
        going = asyncio.ensure_future(child.stop(0))
        self._going.add(going)
        going.add_done_callback(self._going.discard)

    async def _child(self) -> ChildProcess:
        while self._idle:
            child = self._idle.pop()
            if child.alive:
                return child
        return await ChildProcess.start()
