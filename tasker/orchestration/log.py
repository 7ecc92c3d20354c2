"""Log lines about completed steps and ended tasks."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tasker.contracts.execution import Claim
from tasker.contracts.tracing import TraceContext
from tasker.log_lines import ids_of, log_line, of_trace
from tasker.services.engine.exchange import AdvanceResult, Result
from tasker.services.engine.found import ParkedRow
from tasker.services.task_lines import log_task_end

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
        places = {each.task_uuid: (each.correlation_id, each.namespace, each.trace) for each in claims}
        _tell_finished(places, answer.finished)


def log_processed_results(rows: Iterable[ParkedRow], answer: AdvanceResult) -> None:
    """Log a line for each processed parked result, and for each task that ended with it."""
    if not _log.isEnabledFor(logging.INFO):
        return
    dealt_with = [row for row in rows if row.step not in answer.verdicts]
    for row in dealt_with:
        log_line(_log, logging.INFO, "Step result processed", ids_of_parked(row) | {"status": row.kind})
    _tell_finished({row.task: (row.correlation, row.namespace, _place(row)) for row in dealt_with}, answer.finished)


def ids_of_parked(row: ParkedRow) -> dict[str, Any]:
    """Return the log fields of a parked result, as `ids_of` does for a claim."""
    ids = {"correlation_id": row.correlation, "task_uuid": row.task, "step_uuid": row.step, "namespace": row.namespace}
    return {**ids, "step_name": row.name, "attempt": row.attempt, **of_trace(_place(row))}


def _place(row: ParkedRow) -> TraceContext | None:
    return TraceContext(**row.trace) if row.trace else None


def _tell_finished(tasks: Mapping[str, tuple[str, str, TraceContext | None]], finished: Mapping[str, str]) -> None:
    for task, place in tasks.items():
        if task in finished:
            log_task_end(task, finished[task], *place)
