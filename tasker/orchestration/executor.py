"""Who runs steps in a process, as upkeep sees it: a worker, or nobody."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol

from tasker.services.engine.answers import DueAnswer
from tasker.services.engine.exchange import CompletingWorker


class StepExecutor(Protocol):
    """Runs the steps of a process."""

    def caller(self, slots: int = 0) -> CompletingWorker:
        """The process as the engine wants to know it."""
        ...

    def claim_tokens(self) -> list[tuple[str, int]]:
        """The (step, token) pairs that it runs."""
        ...

    async def offer(self, ask: Callable[[int], Awaitable[DueAnswer]]) -> DueAnswer:
        """Call `ask(free slots)` and start the claims of its answer."""
        ...


class NoStepExecutor:
    """A process that runs no steps: it has no slots and holds no claims."""

    def __init__(self, caller: CompletingWorker) -> None:
        self._caller = caller

    def caller(self, slots: int = 0) -> CompletingWorker:
        """This process, without a slot."""
        return self._caller

    def claim_tokens(self) -> list[tuple[str, int]]:
        """Nothing."""
        return []

    async def offer(self, ask: Callable[[int], Awaitable[DueAnswer]]) -> DueAnswer:
        """Ask without a slot to give."""
        return await ask(0)
