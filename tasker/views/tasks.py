"""Report of a task: its outcome with all steps, as values for programs and as plain data for `--json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from tasker.dataclasses import dataclass
from tasker.engine.states.step import SATISFYING
from tasker.engine.states.task import TERMINAL as TASK_TERMINAL
from tasker.engine.states.task import StepCounts, execution_status

FINAL = frozenset[str](TASK_TERMINAL)
STORED = (
    "step_uuid",
    "name",
    "type",
    "handler",
    "state",
    "attempts",
    "max_attempts",
    "ordinal",
    "parents",
    "result",
    "failures",
    "duration_ms",
    "items_processed",
    "reused_from",
    "unserved",
    "begins_at",
    "paused",
)
"""Columns that the query `report` returns for a step, in order."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """Report of one step. `failures` has the error of each failed attempt with its time and worker, the oldest first.

    Times are milliseconds. `unserved` means that the step waits because no live worker has its handler (rule 16).
    `paused` is the pause that stops it: namespace, template, step, task, actor, reason, paused_at. `begins_at` is the
    time for which a step waits that has not begun.
    """

    step_uuid: str
    name: str
    type: str
    handler: str
    state: str
    attempts: int
    max_attempts: int
    depends_on: Sequence[str]
    result: Any
    failures: Sequence[Mapping[str, Any]]
    duration_ms: int | None
    items_processed: int | None = None
    unserved: bool = False
    paused: Mapping[str, Any] | None = None
    begins_at: datetime | None = None
    reused_from: str | None = None
    """Task from which a rerun task took the result; the attempts are recorded there."""

    @property
    def error(self) -> dict[str, Any] | None:
        """Type, message, code and retryable of the last failure, or None if the step succeeded after it."""
        if not self.failures or self.state in SATISFYING:
            return None
        last = self.failures[-1]
        return {
            "type": last.get("error_type"),
            "message": last.get("message"),
            "code": last.get("error_code"),
            "retryable": last.get("retryable"),
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data (`tasker run --json`)."""
        return {
            "name": self.name,
            "type": self.type,
            "state": self.state,
            "attempts": self.attempts,
            "max_attempts": self.max_attempts,
            "depends_on": list(self.depends_on),
            "result": self.result,
            "error": self.error,
            "duration_ms": self.duration_ms,
        }


@dataclass(frozen=True, slots=True)
class TaskReport:
    """Report of one task, with `steps` by name in topological order."""

    task_uuid: str
    namespace: str
    template: str
    version: str
    status: str
    execution_status: str
    created_at: datetime
    completed_at: datetime | None
    context: Mapping[str, Any]
    steps: Mapping[str, StepReport]
    cancel_reason: str | None = None
    tags: Sequence[str] = ()
    priority: int = 0
    initiator: str = "unknown"
    correlation_id: str | None = None
    run_at: datetime | None = None
    """Time for which the task was submitted; None if it began at once."""
    expires_at: datetime | None = None
    """Time at which the task is cancelled if no worker has begun it."""
    deadline_at: datetime | None = None
    """Time at which the open steps of the task fail."""
    tenant: str | None = None
    waits_until: datetime | None = None
    """Time at which the task continues on its own, while all of it waits: for its start, a delay or a retry."""
    more_steps: int = 0
    """Steps behind those that are here, where a page of them was asked for."""

    @property
    def finished(self) -> bool:
        """True if the task is in a final state."""
        return self.status in FINAL

    @property
    def succeeded(self) -> bool:
        """True if the task is complete."""
        return self.status == "complete"

    @property
    def results(self) -> dict[str, Any]:
        """Results by step name, of the steps that have one."""
        return {name: step.result for name, step in self.steps.items() if step.result is not None}

    @property
    def final_results(self) -> dict[str, Any]:
        """Results of the steps on which no other step depends."""
        inner = {name for step in self.steps.values() for name in step.depends_on}
        return {name: result for name, result in self.results.items() if name not in inner}

    @property
    def duration_ms(self) -> int | None:
        """Milliseconds from submission to the end; None while the task runs."""
        if self.completed_at is None:
            return None
        return round((self.completed_at - self.created_at).total_seconds() * 1000)

    @property
    def failed_steps(self) -> list[StepReport]:
        """Steps in the state `error`."""
        return [step for step in self.steps.values() if step.state == "error"]

    @property
    def error(self) -> dict[str, Any] | None:
        """Cause of the task's failure: the first failed step's error with its name, or the reason of a cancellation."""
        if self.status == "cancelled":
            return {"type": "cancelled", "message": self.cancel_reason or "the task was cancelled", "step": None}
        for step in self.failed_steps:
            return {**(step.error or {}), "step": step.name}
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data (`tasker run --json`)."""
        return {
            "task_uuid": self.task_uuid,
            "namespace": self.namespace,
            "template": self.template,
            "version": self.version,
            "status": self.status,
            "execution_status": self.execution_status,
            "duration_ms": self.duration_ms,
            "error": self.error,
            "steps": [step.to_dict() for step in self.steps.values()],
        }


def stored_report(document: Mapping[str, Any], *, before: int = 0) -> TaskReport:
    """The report from the document of the query `report`, which leaves out so many steps `before` its page."""
    steps = [dict(zip(STORED, values, strict=True)) for values in document["steps"] or ()]
    static = {step["ordinal"]: step["name"] for step in steps if step["parents"] is not None}
    static |= {int(ordinal): name for ordinal, name in (document["names"] or {}).items()}
    created: dict[str, list[str]] = {}
    for step_uuid, parent in document["edges"]:
        created.setdefault(step_uuid, []).append(parent)
    for step in steps:
        ordinals = step["parents"]
        if ordinals is None:
            step["depends_on"] = created.get(step["step_uuid"], ())
        else:
            step["depends_on"] = [static[ordinal] for ordinal in sorted(ordinals)]
    more = max(0, document["total"] - before - len(steps))
    return replace(task_report({**document, "steps": steps}), more_steps=more)


def task_report(row: Mapping[str, Any]) -> TaskReport:
    """Return the report of a task from its row, which has its steps as rows with the names of `StepReport`."""
    counts = StepCounts(
        row["total"], row["done"], row["failed"], row["cancelled"], row["active"], row["retrying"], row["held"]
    )
    return TaskReport(
        task_uuid=row["task_uuid"],
        namespace=row["namespace"],
        template=row["template"],
        version=row["version"],
        status=row["status"],
        execution_status=str(execution_status(counts)),
        created_at=_time(row["created_at"]),
        completed_at=_time_or_none(row["completed_at"]),
        context=row["context"],
        steps={step["name"]: _step(step) for step in row["steps"]},
        cancel_reason=row["cancel_reason"],
        tags=tuple(row["tags"]),
        priority=row["priority"],
        initiator=row["initiator"],
        correlation_id=row["correlation_id"],
        run_at=_time_or_none(row.get("run_at")),
        expires_at=_time_or_none(row.get("expires_at")),
        deadline_at=_time_or_none(row.get("deadline_at")),
        tenant=row.get("tenant"),
        waits_until=_time_or_none(row.get("waits_until")),
    )


def _step(row: Mapping[str, Any]) -> StepReport:
    return StepReport(
        step_uuid=row["step_uuid"],
        name=row["name"],
        type=row["type"],
        handler=row["handler"],
        state=row["state"],
        attempts=row["attempts"],
        max_attempts=row["max_attempts"],
        depends_on=tuple(row["depends_on"]),
        result=row["result"],
        failures=tuple(row["failures"] or ()),
        duration_ms=row["duration_ms"],
        items_processed=row["items_processed"],
        unserved=row["unserved"],
        paused=row["paused"],
        begins_at=_time_or_none(row.get("begins_at")),
        reused_from=row["reused_from"],
    )


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _time_or_none(text: str | None) -> datetime | None:
    return _time(text) if text else None
