"""The port through which upkeep reaches the worker of its process, if there is one."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from tasker.services.engine.answers import DueAnswer
from tasker.services.engine.exchange import CompletingWorker


class StepExecutor(Protocol):
    """Executor of the steps of a process."""

    def caller(self, slots: int = 0) -> CompletingWorker:
        """Return the process as an argument of the engine's calls."""
        ...

    def claim_tokens(self) -> list[tuple[str, int]]:
        """Return the (step, token) pairs in flight."""
        ...

    async def offer(self, ask: Callable[[int], Awaitable[DueAnswer]]) -> DueAnswer:
        """Call `ask(free slots)` and start the claims of its answer."""
        ...


class NoStepExecutor:
    """Executor of a process that runs no steps: it has no slots and no claims."""

    def __init__(self, caller: CompletingWorker) -> None:
        self._caller = caller

    def caller(self, slots: int = 0) -> CompletingWorker:
        """Return this process, without a slot."""
        return self._caller

    def claim_tokens(self) -> list[tuple[str, int]]:
        """Return an empty list."""
        return []

    async def offer(self, ask: Callable[[int], Awaitable[DueAnswer]]) -> DueAnswer:
        """Call `ask` with zero slots."""
        return await ask(0)
