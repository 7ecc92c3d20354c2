"""Starting what a write has handed over while the next write is under way."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from tasker.execution.worker import Worker
from tasker.services.engine.exchange import AdvanceResult


class HandOffStarter:
    """Has `worker` start the claims of answers, one answer after the other, beside whoever has received them.

    `on_failed` is called when one could not be started: its claims are nobody's then, and the others are started.
    """

    def __init__(self, worker: Worker, on_failed: Callable[[], None]) -> None:
        self._worker, self._on_failed = worker, on_failed
        self._waiting: deque[AdvanceResult] = deque()
        self._failure: Exception | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self, answer: AdvanceResult) -> None:
        """Start its claims, a turn of the loop later: what is to be written now is sent before that."""
        self._waiting.append(answer)
        if self._task is None or self._task.done():
            self._task = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        await asyncio.sleep(0)
        while self._waiting:
            try:
                await self._worker.accept(self._waiting.popleft())
            except Exception as error:
                self._failure = error
                self._on_failed()

    def raise_failure(self) -> None:
        """Raise what went wrong since the last call."""
        error, self._failure = self._failure, None
        if error is not None:
            raise error

    async def stop(self) -> bool:
        """Start nothing more; True when claims were dropped by that. Their slots are free again."""
        task, waiting = self._task, len(self._waiting)
        while self._waiting:
            self._worker.slots.finish(len(self._waiting.popleft().claims))
        if task is None or task.done():
            return waiting > 0
        task.cancel()
        await asyncio.wait([task])
        return True
