"""Log lines of completed steps, ended tasks and lost workers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from tasker.engine.exchange import AdvanceResult, Result
from tasker.engine.sweep_answers import Orphan, ParkedRow, SilentWorker, WorkerLabel
from tasker.engine.task_log import log_task_end
from tasker.handlers.claims import Claim
from tasker.logging.lines import ids_of, log_line, of_trace
from tasker.logging.trace_context import TraceContext

_log = logging.getLogger("tasker.orchestration")


def log_completed_steps(results: Iterable[Result], is_good: Callable[[Result], bool]) -> None:
    """Log a line for each stored result for which `is_good` is true."""
    if _log.isEnabledFor(logging.INFO):
        for result in results:
            claim = result.claim
            if is_good(result):
                fields = ids_of(claim) | {"operation": "step_completed", "duration_ms": result.duration_ms}
                log_line(_log, logging.INFO, f"Step completed: step_uuid={claim.step_uuid}", fields)


def log_finished_tasks(claims: Iterable[Claim], answer: AdvanceResult) -> None:
    """Log a line for each task that the results of these claims ended."""
    if answer.finished and _log.isEnabledFor(logging.INFO):
        places = {claim.task_uuid: (claim.correlation_id, claim.namespace, claim.trace) for claim in claims}
        _tell_finished(places, answer.finished)


def log_processed_results(rows: Iterable[ParkedRow], answer: AdvanceResult) -> None:
    """Log a line for each processed parked result, and for each task that ended with it."""
    if not _log.isEnabledFor(logging.INFO):
        return
    dealt_with = [row for row in rows if row.step not in answer.verdicts]
    for row in dealt_with:
        log_line(_log, logging.INFO, "Step result processed", ids_of_parked(row) | {"status": row.kind})
    _tell_finished({row.task: (row.correlation, row.namespace, _trace_of(row)) for row in dealt_with}, answer.finished)


def ids_of_parked(row: ParkedRow) -> dict[str, Any]:
    """Return the log fields of a parked result, as `ids_of` does for a claim."""
    ids = {"correlation_id": row.correlation, "task_uuid": row.task, "step_uuid": row.step, "namespace": row.namespace}
    return {**ids, "step_name": row.name, "attempt": row.attempt, **of_trace(_trace_of(row))}


def _trace_of(row: ParkedRow) -> TraceContext | None:
    return TraceContext(**row.trace) if row.trace else None


def _tell_finished(tasks: Mapping[str, tuple[str, str, TraceContext | None]], finished: Mapping[str, str]) -> None:
    for task, place in tasks.items():
        if task in finished:
            log_task_end(task, finished[task], *place)


class LostWorkerLog:
    """Log of workers without a heartbeat for two thirds of their lease, which are about to be lost; one line each."""

    def __init__(self) -> None:
        self._told: set[str | None] = set()

    def log_silent(self, silent: Sequence[SilentWorker]) -> None:
        """Log the silent workers. A worker that renewed its lease since may be logged again."""
        for worker in silent:
            if worker.label.worker not in self._told:
                _log.warning(
                    "worker_silent %s since=%s lease_left=%.1f s",
                    *(_label_text(worker.label), worker.since, worker.lease_left_ms / 1000),
                )
        self._told = {lost.label.worker for lost in silent}


def log_lost_workers(taken: Sequence[Orphan]) -> None:
    """Log each worker that lost steps, with their number and the reason."""
    for _, group in groupby(sorted(taken, key=_worker), key=_worker):
        steps = list(group)
        _log.warning("worker_lost %s steps=%s reason=%s", _label_text(steps[0].label), len(steps), _why(steps))


def _worker(orphan: Orphan) -> str:
    return str(orphan.label.worker)


def _label_text(label: WorkerLabel) -> str:
    known = [f"{key}={value}" for key, value in label._asdict().items() if key == "worker" or value is not None]
    return " ".join(known)


def _why(steps: Sequence[Orphan]) -> str:
    silent = next((step.silent_ms for step in steps if step.silent_ms is not None), None)
    if silent is not None:
        return f"'silent for {silent / 1000:.1f} s, its lease is over'"
    return "'overdue steps'" if any(step.overdue for step in steps) else "'not in the registry'"
