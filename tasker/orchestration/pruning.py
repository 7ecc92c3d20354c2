"""The sweep that prunes finished tasks: one process starts in each interval and prunes a few slices per sweep."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from tasker.dataclasses import dataclass
from tasker.engine.calls import Engine
from tasker.errors import LockTimeout, StatementTimeout
from tasker.services.database import Pruned, PruneTarget, RetentionService
from tasker.settings.database import Retention
from tasker.settings.retention import RetentionRule

TURN = "retention"
"""Kind of turn that the sweeps of a fleet take (`tasker.take_turn_v1`)."""

SLICES = 20
"""Largest number of transactions in one sweep: lost workers and retries must not wait for the deletion."""
_log = logging.getLogger("tasker.orchestration")


@dataclass(frozen=True, slots=True)
class RetentionSettings:
    """Settings of what is pruned and how often. Without rules and an event limit nothing is pruned."""

    rules: Sequence[RetentionRule] = ()
    interval_ms: int = Retention.interval_seconds * 1000
    slice_steps: int = Retention.batch_size
    events_ms: int | None = Retention.events_days * 86_400_000
    """Age in milliseconds after which domain events are deleted, independent of their tasks; None deletes none."""


class RetentionSweep:
    """Deletion of tasks beyond their retention; what remains when its process ends follows in the next interval."""

    def __init__(self, engine: Engine, settings: RetentionSettings) -> None:
        self._engine, self._settings = engine, settings
        self._retention = RetentionService(engine.connection, slice_steps=settings.slice_steps)
        self._left: list[PruneTarget] = []
        self._events_left = False
        self._may_delete: bool | None = None

    async def look(self) -> list[Pruned]:
        """Continue the deletion, or start one if the interval is over; return what was finished.

        Tasks locked by other transactions are left for the next time.
        """
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
        answer = await self._engine.read("take_turn", {"kind": TURN, "after_ms": self._settings.interval_ms})
        return bool(answer["mine"])


def _tell(pruned: Pruned) -> None:
    if pruned.tasks:
        _log.info(
            "pruned template=%s/%s version=%s failed=%s before=%s tasks=%s steps=%s",
            *(pruned.namespace, pruned.template, pruned.version, pruned.failed, pruned.before),
            *(pruned.tasks, pruned.steps),
        )
