"""The sweep that deletes finished tasks: one process begins in each interval, a few slices with every sweep of its."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.defaults.retention import EVENTS_KEPT_DAYS, RETENTION_INTERVAL_SECONDS, SLICE_STEPS
from tasker.contracts.retention import RetentionRule
from tasker.errors import LockTimeout, StatementTimeout
from tasker.services.database.retention import Pruned, PruneTarget, RetentionService
from tasker.services.engine.calls import Engine

TURN = "retention"
"""What the sweeps of a fleet take turns for (`tasker.turn_v1`)."""

SLICES = 20
"""So many transactions at most in one sweep: lost workers and retries do not wait until all is deleted."""
_log = logging.getLogger("tasker.orchestration")


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """What is deleted, and how often it is looked for. Without rules, and a limit for events, nobody looks."""

    rules: Sequence[RetentionRule] = ()
    interval_ms: int = RETENTION_INTERVAL_SECONDS * 1000
    slice_steps: int = SLICE_STEPS
    events_ms: int | None = EVENTS_KEPT_DAYS * 86_400_000
    """Domain events that are older are deleted, whatever becomes of their tasks; None: never."""


class RetentionSweep:
    """Deletes what is too old. What it has not come to when its process ends, the next interval's process does."""

    def __init__(self, engine: Engine, settings: RetentionSettings) -> None:
        self._engine, self._settings = engine, settings
        self._retention = RetentionService(engine.connection, slice_steps=settings.slice_steps)
        self._left: list[PruneTarget] = []
        self._events_left = False
        self._may_delete: bool | None = None

    async def look(self) -> list[Pruned]:
        """Go on with what is left, or begin anew if it is time to; what was finished. Others' tasks come next time."""
        if not self._settings.rules and self._settings.events_ms is None:
            return []
        try:
            if not self._left and not self._events_left and await self._is_my_turn():
                self._left = await self._retention.targets(self._settings.rules) if self._settings.rules else []
                self._events_left = self._settings.events_ms is not None
            await self._delete_events()
            return await self._delete()
        except (LockTimeout, StatementTimeout) as error:
            _log.warning("pruning_skipped reason=%s", error)
            self._left = self._left[1:]
            return []

    async def _delete_events(self) -> None:
        deleted = 0
        for _ in range(SLICES):
            if not self._events_left:
                break
            args = {"older_ms": self._settings.events_ms, "limit": self._settings.slice_steps}
            answer = await self._engine.read("prune_events", args)
            deleted, self._events_left = deleted + answer["events"], not answer["over"]
        if deleted:
            _log.info("pruned_events count=%s", deleted)

    async def _delete(self) -> list[Pruned]:
        done: list[Pruned] = []
        for _ in range(SLICES):
            if not self._left:
                break
            await self._retention.delete_slice(self._left[0])
            if self._left[0].over:
                done.append(self._left.pop(0).pruned)
                _tell(done[-1])
        return done

    async def _is_my_turn(self) -> bool:
        if self._may_delete is None:
            self._may_delete = await self._retention.may_delete()
            if not self._may_delete:
                _log.info("pruning_turn_elsewhere reason=this role may not delete tasks")
        return self._may_delete and await self._takes_turn()

    async def _takes_turn(self) -> bool:
        answer = await self._engine.read("turn", {"kind": TURN, "after_ms": self._settings.interval_ms})
        return bool(answer["mine"])


def _tell(pruned: Pruned) -> None:
    if pruned.tasks:
        _log.info(
            "pruned template=%s/%s version=%s failed=%s before=%s tasks=%s steps=%s",
            *(pruned.namespace, pruned.template, pruned.version, pruned.failed, pruned.before),
            *(pruned.tasks, pruned.steps),
        )
