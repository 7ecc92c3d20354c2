"""The sweep that prunes finished tasks: one process starts in each interval and prunes a few slices per sweep."""

from __future__ import annotations

import logging

from tasker.engine.calls import Engine
from tasker.errors import LockTimeout, StatementTimeout
from tasker.services.database import Pruned, PruneTarget, RetentionService
from tasker.settings.database import Retention
from tasker.settings.retention import retention_rules

TURN = "retention"
"""Kind of turn that the sweeps of a fleet take (`tasker.take_turn_v1`)."""

SLICES = 20
"""Largest number of transactions in one sweep: lost workers and retries must not wait for the deletion."""
_log = logging.getLogger("tasker.orchestration")


class RetentionSweep:
    """Deletion of tasks beyond their retention; what remains when its process ends follows in the next interval."""

    def __init__(self, engine: Engine, settings: Retention) -> None:
        self._engine, self._settings = engine, settings
        self._retention = RetentionService(engine.connection, slice_steps=settings.batch_size)
        self._rules = retention_rules(settings)
        self._left: list[PruneTarget] = []
        self._events_left = False
        self._may_delete: bool | None = None

    async def run(self) -> list[Pruned]:
        """Continue the deletion, or start one if the interval is over; return what was finished.

        Tasks locked by other transactions are left for the next time.
        """
        if not self._rules and not self._settings.events_days:
            return []
        try:
            if not self._left and not self._events_left and await self._is_my_turn():
                self._left = await self._retention.targets(self._rules) if self._rules else []
                self._events_left = self._settings.events_days > 0
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
            args = {"older_ms": int(self._settings.events_days * 86_400_000), "limit": self._settings.batch_size}
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
                _log_pruned(done[-1])
        return done

    async def _is_my_turn(self) -> bool:
        if self._may_delete is None:
            self._may_delete = await self._retention.may_delete()
            if not self._may_delete:
                _log.info("pruning_turn_elsewhere reason=this role may not delete tasks")
        return self._may_delete and await self._takes_turn()

    async def _takes_turn(self) -> bool:
        answer = await self._engine.read(
            "take_turn", {"kind": TURN, "after_ms": self._settings.interval_seconds * 1000}
        )
        return bool(answer["mine"])


def _log_pruned(pruned: Pruned) -> None:
    if pruned.tasks:
        _log.info(
            "pruned template=%s/%s version=%s failed=%s before=%s tasks=%s steps=%s",
            *(pruned.namespace, pruned.template, pruned.version, pruned.failed, pruned.before),
            *(pruned.tasks, pruned.steps),
        )
