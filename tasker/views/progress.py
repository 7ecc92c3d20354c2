"""Progress of a task: small reads for a live view, several times a second."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from tasker.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ReportedProgress:
    """Progress reported by a handler (`context.report_progress`). Values not reported are None.

    `eta_seconds` is the remaining time counted from `reported_at`, estimated from the pace so far.
    """

    percent: float | None
    done: float | None
    total: float | None
    message: str | None
    reported_at: datetime
    eta_seconds: float | None


def reported(row: Mapping[str, Any] | None) -> ReportedProgress | None:
    """Parse the answer of `tasker.reported`."""
    return (
        None if row is None else ReportedProgress(**{**row, "reported_at": datetime.fromisoformat(row["reported_at"])})
    )


@dataclass(frozen=True, slots=True)
class StepProgress:
    """State of one step at a moment. `template_step` differs from `name` for the instances of a batch worker.

    `at` is the time of its last change; `started_at` belongs to its latest attempt, `due_at` to the next one, if it
    waits for a time. `error` has type, message and attempt of the last failure of a step that failed or will be
    retried. `unserved` is the handler of a waiting step that no live worker has. `duration_ms` is the run time of the
    handler in the latest attempt, once it has ended; `reported` is its last progress report while it runs.
    """

    name: str
    template_step: str
    state: str
    attempts: int
    max_attempts: int
    at: datetime
    started_at: datetime | None = None
    due_at: datetime | None = None
    items_processed: int | None = None
    error: Mapping[str, Any] | None = None
    unserved: str | None = None
    duration_ms: int | None = None
    reported: ReportedProgress | None = None


@dataclass(frozen=True, slots=True)
class TaskProgress:
    """Task at the moment `at` (the database's clock) with the requested steps, in topological order.

    `pauses` are those that stop a part of it now: namespace, template, step, task or queue, actor, reason, paused_at.
    """

    status: str
    finished: bool
    total: int
    done: int
    failed: int
    at: datetime
    steps: Sequence[StepProgress]
    pauses: Sequence[Mapping[str, Any]] = ()


def task_progress(row: Mapping[str, Any]) -> TaskProgress:
    """Return the progress from the document of the query `progress`."""
    fields = {**row, "at": datetime.fromisoformat(row["at"]), "steps": tuple(_step(step) for step in row["steps"])}
    return TaskProgress(**fields)


def _step(row: Mapping[str, Any]) -> StepProgress:
    times = {name: _time(row[name]) for name in ("at", "started_at", "due_at")}
    return StepProgress(**{**row, **times, "reported": reported(row["reported"])})


def _time(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
