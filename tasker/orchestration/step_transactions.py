"""Results that are written on a connection of their handler (`effect: transactional`)."""

from __future__ import annotations

from time import perf_counter
from typing import Any

from tasker.db.sql_files import query
from tasker.engine.calls import Engine
from tasker.engine.exchange import AdvanceResult, CompletingWorker, PreparedWrite, Result
from tasker.handlers.claims import Claim
from tasker.orchestration.changes import change_of


class EngineTransactions:
    """Part of the engine in transactions of handlers."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    def prepare(self, result: Result, caller: CompletingWorker) -> PreparedWrite:
        """Return the write that completes a step with this result.

        It claims no further steps, whose claims the commit could lose, and takes no locks of limits, which a slow
        handler would hold.
        """
        change = change_of(result, 0.0)
        args: dict[str, Any] = {**caller.args(0), "wait": True, "grants": False, "items": [change]}
        if "ev" in change:
            args["events"] = True
        return PreparedWrite(result, (change,), self._engine.expression("advance"), args, self._engine.arguments(args))

    async def committed(self, write: PreparedWrite, answer: dict[str, Any]) -> AdvanceResult:
        """Send what follows from a committed write, and return its parsed answer."""
        answer = await self._engine.committed("advance", write.args, answer, perf_counter())
        return AdvanceResult.parse(answer, write.changes)

    async def is_complete(self, claim: Claim) -> bool:
        """Return True if this claim has completed its step; waits for a commit under way. Raises `DatabaseError`."""
        args = {"step": claim.step_uuid, "token": claim.token}
        return bool(await self._engine.connection.execute(query("tasks", "completed_by_claim"), args))
