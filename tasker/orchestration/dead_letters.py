"""Search for stale tasks, and the progress of replays."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from time import perf_counter
from typing import Any

from tasker.engine.answers import ReplayAnswer, StaleAnswer
from tasker.engine.calls import Engine
from tasker.engine.exchange import REPLAY_STEPS, CompletingWorker, OnAdvanced
from tasker.engine.task_log import read_task_ids
from tasker.errors import LockTimeout, StatementTimeout
from tasker.logging.lines import log_line
from tasker.metrics import Histogram
from tasker.settings.execution import BatchProcessing, DeadLetterSettings

TURNS = 50
"""Largest number of transactions per sweep, and steps per transaction: other repairs must not wait long."""
_log = logging.getLogger("tasker.orchestration")


class ReplaySweep:
    """Part of a sweep that continues all running replays with what is due."""

    def __init__(self, engine: Engine, on_advanced: OnAdvanced = lambda _: None) -> None:
        self._engine, self._on_advanced = engine, on_advanced

    async def run(self, caller: CompletingWorker, between: Callable[[], Awaitable[None]] | None = None) -> None:
        """Replay what the rates allow, for a while; the next sweep continues. Call `between` after each transaction."""
        last: ReplayAnswer | None = None
        args = {"window": caller.window, "steps": REPLAY_STEPS}
        try:
            for _ in range(TURNS):
                answer = await self._engine.call_typed("replay", args, ReplayAnswer)
                # other transactions have the tasks locked
                if not answer.replay or (last and not answer.done and not last.done):
                    break
                self._on_advanced(answer)
                last = answer
                if between is not None:
                    await between()
        except (LockTimeout, StatementTimeout) as error:
            _log.warning("replay_skipped reason=%s", error)


SEARCH_BOUNDS_MS = (10, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 30_000, 60_000)
"""Upper bounds of the histogram buckets of search durations."""


class StalenessSearch:
    """Search for stale tasks: records them as dead letters, and ends those that cannot make progress."""

    def __init__(
        self,
        engine: Engine,
        settings: DeadLetterSettings,
        batches: BatchProcessing,
        on_advanced: OnAdvanced = lambda _: None,
    ) -> None:
        self._engine, self._on_advanced = engine, on_advanced
        self._settings, self._batches = settings.staleness_detection, batches
        self._enabled = settings.enabled and settings.staleness_detection.enabled
        self.counts: Counter[str] = Counter()
        """Counters of this process: `detection_runs`, `tasks_detected`, `entries_created`,
        `tasks_transitioned_to_error`."""
        self.durations = Histogram(
            "tasker_staleness_detection_duration_milliseconds",
            "A search for stale tasks by this process, all slices of it.",
            SEARCH_BOUNDS_MS,
        )

    async def search(self, worker: str) -> None:
        """Search if the interval is over. Tasks locked by other transactions are found by the next search."""
        if self._enabled:
            try:
                await self._search(worker)
            except (LockTimeout, StatementTimeout) as error:
                _log.warning("staleness_search_skipped reason=%s", error)

    async def _search(self, worker: str) -> None:
        began = perf_counter()
        every_ms = self._settings.detection_interval_seconds * 1000
        first = {"every_ms": every_ms, "settings": self._limits()}
        page = await self._slice(worker, first)
        searched = page.searched
        while page.last is not None:
            page = await self._slice(worker, {"after": page.last})
        if searched:
            self.durations.observe((perf_counter() - began) * 1000)

    async def _slice(self, worker: str, more: Mapping[str, Any]) -> StaleAnswer:
        settings, actions = self._settings, self._settings.actions
        args = {
            "worker": worker,
            "limit": settings.batch_size,
            "dry_run": settings.dry_run,
            "to_error": actions.auto_transition_to_error,
            "to_dlq": actions.auto_move_to_dlq,
            "channel": actions.event_channel if actions.emit_events else None,
            **more,
        }
        answer = await self._engine.call_typed("stale", args, StaleAnswer)
        self._on_advanced(answer)
        self.counts["detection_runs"] += answer.searched and "every_ms" in more
        self._count(answer.stale)
        await self._log_stale(answer.stale)
        return answer

    def _limits(self) -> dict[str, int]:
        """Return the minutes after which a task is stale; templates may override them for their tasks."""
        limits = self._settings.thresholds
        return {
            "waiting_for_dependencies_minutes": limits.waiting_for_dependencies_minutes,
            "waiting_for_retry_minutes": limits.waiting_for_retry_minutes,
            "steps_in_process_minutes": limits.steps_in_process_minutes,
            "task_max_lifetime_minutes": limits.task_max_lifetime_hours * 60,
            "checkpoint_stall_minutes": self._batches.checkpoint_stall_minutes,
        }

    def _count(self, stale: Sequence[Mapping[str, Any]]) -> None:
        self.counts["tasks_detected"] += len(stale)
        for task in stale if not self._settings.dry_run else ():
            self.counts["entries_created"] += task["moved_to_dlq"]
            self.counts["tasks_transitioned_to_error"] += task["transition_success"]

    async def _log_stale(self, stale: Sequence[Mapping[str, Any]]) -> None:
        ids = await read_task_ids(self._engine.connection, [task["task_uuid"] for task in stale])
        for task in stale:
            fields = ids[task["task_uuid"]] | _fields(task) | {"dry_run": self._settings.dry_run}
            log_line(_log, logging.WARNING, "stale_task", fields)


def _fields(task: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "namespace": task["namespace_name"],
        "state": task["current_state"],
        "template": task["task_name"],
        "minutes": task["time_in_state_minutes"],
        "limit": task["threshold_minutes"],
        **{name: task[name] for name in ("signal", "reason", "action_taken")},
    }
