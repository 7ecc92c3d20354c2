"""Writes about a worker's own claims: fenced by worker and token, each one extends the step's deadline."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tasker.contracts.events.publishing import KEPT_EVENTS
from tasker.execution.attempt.values import Attempt, Checkpoint
from tasker.execution.settings import WorkerSettings
from tasker.services.engine.calls import Engine


class FencedWrites:
    """Implementation of `ClaimWrites`. All methods raise `DatabaseUnavailable`.

    `on_saved(task_uuid)` is called before each save of a position.
    """

    def __init__(self, engine: Engine, settings: WorkerSettings, on_saved: Callable[[str], None]) -> None:
        self._engine, self._settings, self._on_saved = engine, settings, on_saved

    async def begin(self, attempt: Attempt) -> bool:
        """Restart the step's time as its handler starts (`tasker.begin_v1`); return False if the claim was lost."""
        return not (await self._engine.read("begin", self._fence(attempt))).get("lost")

    async def save(self, attempt: Attempt, position: Checkpoint) -> Mapping[str, Any] | None:
        """Save a position (see `tasker.checkpoint_v1`)."""
        self._on_saved(attempt.claim.task_uuid)
        saved: dict[str, Any] = {
            "cursor": position.cursor,
            "items_processed": position.items_processed,
            "accumulated_results": position.accumulated_results,
        }
        if position.events:
            saved[KEPT_EVENTS] = [event.to_json() for event in position.events]
        answer = await self._engine.read("checkpoint", {**self._fence(attempt), **saved})
        return answer.get("checkpoint")

    def _fence(self, attempt: Attempt) -> dict[str, Any]:
        claim, seconds = attempt.claim, attempt.step.timeout_seconds
        return {
            "worker": claim.worker,
            "step": claim.step_uuid,
            "token": claim.token,
            "timeout_ms": self._settings.timeout_ms if seconds is None else int(seconds * 1000),
            "grace_ms": self._settings.grace_ms,
        }
