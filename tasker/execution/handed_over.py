"""Start of handed-off claims during the next write."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable

from tasker.execution.worker import Worker
from tasker.services.engine.exchange import AdvanceResult


class HandOffStarter:
    """Background start of the claims of answers in `worker`, one answer after another.

    `on_failed` is called when an answer could not be started: no worker runs its claims then. Later answers still
    start.
    """

    def __init__(self, worker: Worker, on_failed: Callable[[], None]) -> None:
        self._worker, self._on_failed = worker, on_failed
        self._waiting: deque[AdvanceResult] = deque()
        self._failure: Exception | None = None
        self._task: asyncio.Task[None] | None = None

    def begin(self, answer: AdvanceResult) -> None:
        """Start the claims of the answer in the next turn of the loop, after the pending write was sent."""
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
        """Raise the error of the last failed start since the previous call, if any."""
        error, self._failure = self._failure, None
        if error is not None:
            raise error

    async def stop(self) -> bool:
        """Stop starting claims and free their slots; return True when claims were dropped."""
        task, waiting = self._task, len(self._waiting)
        while self._waiting:
            self._worker.slots.finish(len(self._waiting.popleft().claims))
        if task is None or task.done():
            return waiting > 0
        task.cancel()
        await asyncio.wait([task])
        return True
