"""What a worker writes about a claim while it has it: fenced by worker and token, each moves the step's deadline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.contracts.execution import Claim
from tasker.contracts.plan import StepPlan
from tasker.execution.attempt.values import Checkpoint
from tasker.execution.settings import WorkerSettings
from tasker.services.engine.calls import Engine


class FencedWrites:
    """The writes of one claim. All raise `DatabaseUnavailable`."""

    __slots__ = ("_claim", "_engine", "_settings", "_step", "_worker")

    def __init__(self, engine: Engine, settings: WorkerSettings, worker: str, claim: Claim, step: StepPlan) -> None:
        self._engine, self._settings = engine, settings
        self._worker, self._claim, self._step = worker, claim, step

    async def begin(self) -> bool:
        """The handler is called only now (see `tasker.begin_v1`); False when the claim is no longer ours."""
        return not (await self._engine.read("begin", self._fence())).get("lost")

    async def save(self, position: Checkpoint) -> Mapping[str, Any] | None:
        """Save a position; the stored checkpoint, or None when the claim is no longer ours (C-100)."""
        saved = {
            "cursor": position.cursor,
            "items_processed": position.items_processed,
            "accumulated_results": position.accumulated_results,
        }
        answer = await self._engine.read("checkpoint", {**self._fence(), **saved})
        return answer.get("checkpoint")

    def _fence(self) -> dict[str, Any]:
        seconds = self._step.timeout_seconds
        return {
            "worker": self._worker,
            "step": self._claim.step_uuid,
            "token": self._claim.token,
            "timeout_ms": self._settings.timeout_ms if seconds is None else int(seconds * 1000),
            "grace_ms": self._settings.grace_ms,
        }
