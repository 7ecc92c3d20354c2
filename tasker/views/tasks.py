"""Views of a task: its progress, its report with all steps, its input, its details."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import Any, Literal, TypeVar

from tasker.dataclasses import dataclass
from tasker.engine.states.step import SATISFYING
from tasker.engine.states.task import TERMINAL as TASK_TERMINAL
from tasker.engine.states.task import (
    StepCounts,
    completion_percentage,
    execution_status,
    health_status,
    recommended_action,
)
from tasker.template.failure_words import OPTIONAL, SKIPPED, WORDS
from tasker.views.model import from_row, published
from tasker.views.steps import StepReadiness
from tasker.views.task_lists import Pagination

T = TypeVar("T")

SETTLED_WORDS = {word.letter: name for name, word in WORDS.items() if word.letter is not None} | {SKIPPED: "skipped"}

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
    "settled",
    "paused",
)
"""Columns that the query `report` returns for a step, in order."""


# Not `Step`: the original publishes that with the readiness of a step, which a report does not compute.
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
    settled: str | None = None
    """Why the task went on without the step: `skipped`, or the word of its `on_failure`; None: it did not."""
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

    @property
    def decision(self) -> tuple[Sequence[str], str] | None:
        """Steps that a decision created, and its reason; None for other steps and for decisions without a reason."""
        outcome = self.result.get("decision_point_outcome") if isinstance(self.result, Mapping) else None
        reason = self.result.get("reason") if isinstance(outcome, Mapping) else None
        if not isinstance(outcome, Mapping) or not isinstance(reason, str):
            return None
        return tuple(map(str, outcome.get("step_names", ()))), reason

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain data (`tasker run --json`)."""
        return {
            "name": self.name,
            "type": self.type,
            "state": self.state,
            "settled": self.settled,
            "attempts": self.attempts,
            "max_attempts": self.max_attempts,
            "depends_on": list(self.depends_on),
            "result": self.result,
            "error": self.error,
            "duration_ms": self.duration_ms,
        }


@dataclass(frozen=True, slots=True)
class TaskFacts:
    """Fields that every view of a task has."""

    task_uuid: str
    namespace: str
    template: str
    version: str
    status: str
    execution_status: str
    created_at: datetime
    completed_at: datetime | None
    context: Mapping[str, Any]
    priority: int | None
    tags: Sequence[str]
    initiator: str
    correlation_id: str | None
    run_at: datetime | None
    """Time for which the task was submitted; None if it began at once."""
    expires_at: datetime | None
    """Time at which the task is cancelled if no worker has begun it; None if it never is, or has ended."""
    deadline_at: datetime | None
    """Time at which the open steps of the task fail; None without a deadline."""
    outcome: str | None
    """`partial`: the task is complete without some of its steps. `compensating`, `compensated` and
    `compensation_failed`: its effects are being undone, were undone, or could not be undone. None: none of these."""
    tenant: str | None
    """Tenant (customer, team or account) of the task."""
    waits_until: datetime | None
    """Time at which the task continues on its own, while all of it waits: for its start, a delay, a retry or a time."""
    waiting_for: Sequence[str]
    """What its steps wait for without a worker: `time` or `event`."""
    parent_step_uuid: str | None
    """Step that started the task; None if no step did."""

    @property
    def name(self) -> str:
        """Name of the template."""
        return self.template

    @property
    def current_state(self) -> str:
        """State of the task."""
        return self.status

    @property
    def parent_task_uuid(self) -> str | None:
        """Task of the step that started this one."""
        return None if self.parent_step_uuid is None else f"{self.parent_step_uuid[:-6]}000000"

    @property
    def finished(self) -> bool:
        """True if the task is in a final state."""
        return self.status in FINAL

    @property
    def succeeded(self) -> bool:
        """True if the task is complete."""
        return self.status == "complete"

    @property
    def duration_ms(self) -> int | None:
        """Milliseconds from submission to the end; None while the task runs."""
        if self.completed_at is None:
            return None
        return round((self.completed_at - self.created_at).total_seconds() * 1000)


@dataclass(frozen=True, slots=True)
class TaskReport(TaskFacts):
    """Report of one task, with `steps` by name in topological order."""

    steps: Mapping[str, StepReport]
    cancel_reason: str | None = None
    more_steps: int = 0
    """Number of steps after those in `steps`, if a page of them was requested."""

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
    def failed_steps(self) -> list[StepReport]:
        """Steps in the state `error`, without those that the task went on without."""
        return [step for step in self.steps.values() if step.state == "error" and step.settled is None]

    @property
    def missing_steps(self) -> list[StepReport]:
        """Steps that failed or were skipped and without which the task went on, except optional ones."""
        return [step for step in self.steps.values() if step.settled not in (None, OPTIONAL)]

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
            "outcome": self.outcome,
            "duration_ms": self.duration_ms,
            "error": self.error,
            "steps": [step.to_dict() for step in self.steps.values()],
        }


ALIASES = {"template": "name"}
DERIVED = {"current_state": "status", "duration_ms": "duration_ms", "parent_task_uuid": "parent_task_uuid"}


@published("TaskResponse", aliases=ALIASES, derived=DERIVED)
@dataclass(frozen=True, slots=True)
class Task(TaskFacts):
    """Task with its progress; lists omit the steps. Times are ISO 8601 in UTC."""

    named_task_uuid: str
    updated_at: datetime
    source_system: str
    reason: str
    parent_correlation_id: str | None
    total_steps: int
    pending_steps: int
    in_progress_steps: int
    completed_steps: int
    failed_steps: int
    ready_steps: int
    recommended_action: str | None
    completion_percentage: float
    health_status: str
    steps: Sequence[StepReadiness]
    more_steps: int | None
    """Number of steps after those in `steps`; None if the task is shown without steps."""


@published("TaskCreated", aliases=ALIASES, derived=DERIVED)
@dataclass(frozen=True, slots=True)
class TaskCreated(Task):
    """Created task, or the existing one that the request asked for (`created` is false).

    `unique`: the existing one runs under the same unique key of its template. `debounced`: it has not begun, and got
    the input of this request.
    """

    step_count: int
    message: str
    created: bool
    unique: bool = False
    debounced: bool = False


@published("TaskCancelled", aliases=ALIASES, derived=DERIVED)
@dataclass(frozen=True, slots=True)
class TaskCancelled(Task):
    """Cancelled task and its previous state."""

    previous_status: str


@dataclass(frozen=True, slots=True)
class TaskRequested:
    """Identifier that the task will have; `status` is `requested`."""

    task_uuid: str
    status: Literal["requested"] = "requested"


@published("TaskListResponse")
@dataclass(frozen=True, slots=True)
class TaskPage:
    """Page of tasks without their steps."""

    tasks: Sequence[Task]
    pagination: Pagination


COUNTS = ("total", "done", "failed", "cancelled", "active", "retrying", "held")
"""Columns with the numbers of a task's steps, in the order of `StepCounts`."""


def task_of(row: Mapping[str, Any], steps: Sequence[StepReadiness] = (), more_steps: int | None = None) -> Task:
    """Return the task of a row of the query `tasks` for clients."""
    counts = StepCounts(*(row[name] for name in COUNTS))
    numbers = {
        "total_steps": counts.total,
        "pending_steps": counts.total - sum(row[name] for name in COUNTS[1:-1]),
        "in_progress_steps": counts.active,
        "completed_steps": counts.done,
        "failed_steps": counts.error,
        "ready_steps": row["held"],
        "recommended_action": recommended_action(counts),
        "completion_percentage": completion_percentage(counts),
        "health_status": health_status(counts),
    }
    return from_row(
        Task, row, **numbers, execution_status=str(execution_status(counts)), steps=steps, more_steps=more_steps
    )


def extended(kind: type[T], task: Task, **more: Any) -> T:
    """Return the task as a view that has more fields."""
    return kind(**{field.name: getattr(task, field.name) for field in fields(task)}, **more)


def stored_report(document: Mapping[str, Any], *, before: int = 0) -> TaskReport:
    """The report from the document of the query `report`, which leaves out so many steps `before` its page."""
    task, steps = document["task"], [dict(zip(STORED, values, strict=True)) for values in document["steps"] or ()]
    static = {step["ordinal"]: step["name"] for step in steps if step["parents"] is not None}
    static |= {int(ordinal): name for ordinal, name in (document["names"] or {}).items()}
    created: dict[str, list[str]] = {}
    for step_uuid, parent in document["edges"]:
        created.setdefault(step_uuid, []).append(parent)
    for step in steps:
        ordinals = step["parents"] or ()  # a convergence lists failure branches, too, which exist only once created
        known = [static[ordinal] for ordinal in sorted(ordinals) if ordinal in static]
        step["depends_on"] = [*known, *created.get(step["step_uuid"], ())]
    more = max(0, document["total"] - before - len(steps))
    return replace(task_report({**task, "steps": steps}), more_steps=more)


def task_report(row: Mapping[str, Any]) -> TaskReport:
    """Return the report of a task from its row, which has its steps as rows with the names of `StepReport`."""
    counts = StepCounts(*(row[name] for name in COUNTS))
    steps = {step["name"]: _step(step) for step in row["steps"]}
    status = str(execution_status(counts))
    lists: dict[str, Any] = {"tags": tuple(row["tags"]), "waiting_for": list(row.get("waiting_for") or ())}
    return from_row(TaskReport, row, execution_status=status, steps=steps, **lists)


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
        settled=SETTLED_WORDS.get(row.get("settled") or ""),
        reused_from=row["reused_from"],
    )


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _time_or_none(text: str | None) -> datetime | None:
    return _time(text) if text else None
