"""Rows of steps and states in words for the page of a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from shlex import quote
from typing import Any

from tasker.dataclasses import dataclass
from tasker.engine.states.step import SATISFYING, StepState
from tasker.engine.states.task import StepCounts
from tasker.services.wording import SYMBOLS, URGENCY, duration, folded, span
from tasker.template.plan import Plan, StepPlan
from tasker.views.fleet import Pause
from tasker.views.tasks import StepReport, TaskReport

RESOLVABLE = frozenset(
    {
        StepState.PENDING,
        StepState.ENQUEUED,
        StepState.IN_PROGRESS,
        StepState.ENQUEUED_FOR_ORCHESTRATION,
        StepState.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION,
        StepState.WAITING_FOR_RETRY,
        StepState.ERROR,
    }
)


@dataclass(frozen=True, slots=True)
class ShownTask:
    """Task at a point in time, with the numbers of its steps and the cause of its failure.

    `report` may have a page of the steps. `pause` is that of the task itself, even if it holds back no step yet.
    """

    report: TaskReport
    now: datetime
    counts: StepCounts
    error: Mapping[str, Any] | None
    pause: Pause | None = None

    @property
    def percent(self) -> int:
        """Percentage of steps whose dependents may proceed."""
        return round(100 * self.counts.done / self.counts.total) if self.counts.total else 0

    @property
    def lasted(self) -> str:
        """Time from the submission of the task to its end, or until now."""
        end = self.report.completed_at or self.now
        return duration(max(0.0, (end - self.report.created_at).total_seconds() * 1000))


@dataclass(frozen=True, slots=True)
class StepRow:
    """Step, or all instances of a batch worker; `first` is the instance that the row links to."""

    name: str
    first: StepReport
    state: str
    count: int
    done: int
    failed: Sequence[str]

    @property
    def lasted(self) -> str:
        """Duration of the last attempt; empty for several instances."""
        return duration(self.first.duration_ms) if self.count == 1 else ""

    @property
    def says(self) -> str:
        """Error of the step in one line."""
        error = self.first.error if self.count == 1 else None
        return f"{error['type']}: {error['message']}" if error else ""


def rows_of(report: TaskReport) -> list[StepRow]:
    """Return the steps in topological order, with the instances of a batch worker as one row."""
    return [_row(steps) for steps in folded(list(report.steps.values()))]


def _row(steps: Sequence[StepReport]) -> StepRow:
    worst = min(steps, key=lambda step: URGENCY.index(step.state))
    name = steps[0].name if len(steps) == 1 else span([step.name for step in steps])
    done = sum(step.state in SATISFYING for step in steps)
    failed = [step.name for step in steps if step.state == StepState.ERROR]
    return StepRow(name, worst, worst.state, len(steps), done, failed)


def commands_of(report: TaskReport) -> dict[str, str]:
    """Return the commands that do the same as the task's page."""
    task = report.task_uuid
    return {
        "show": f"tasker task show {task}",
        "explain": f"tasker task explain {task}",
        "history": f"tasker task history {task}",
        "logs": f"tasker task logs {task}",
        "children": f"tasker task children {task}",
        "retry": f"tasker task retry {task} --reason '...'",
        "cancel": f"tasker task cancel {task} --reason '...'",
        "compensate": f"tasker task compensate {task} --reason '...'",
        "pause": f"tasker pause --task {task} --reason '...'",
        "resume": f"tasker resume --task {task}",
    }


def step_commands(task: str, step: StepReport) -> dict[str, str]:
    """Return the commands that do the same as the page of a step."""
    name = quote(step.name)
    return {
        "reset": f"tasker task step reset {task} {name} --reason '...'",
        "resolve": f"tasker task step resolve {task} {name} --reason '...'",
        "complete": f"tasker task step complete {task} {name} --result '{{...}}' --reason '...'",
        "rerun": f"tasker task rerun {task} --from {name} --reason '...'",
        "logs": f"tasker task logs {task} --step {name}",
        "show": f"tasker task step show {task} {name}",
    }


def may_resolve(step: StepReport) -> bool:
    """Return whether an operator may mark the step as done."""
    return step.state in RESOLVABLE


GROUPS = {
    "pending": "waits",
    "initializing": "waits",
    "enqueuing_steps": "runs",
    "enqueued": "waits",
    "in_progress": "runs",
    "steps_in_process": "runs",
    "evaluating_results": "runs",
    "enqueued_for_orchestration": "runs",
    "enqueued_as_error_for_orchestration": "retries",
    "waiting_for_dependencies": "waits",
    "waiting_for_retry": "retries",
    "blocked_by_failures": "failed",
    "complete": "done",
    "resolved_manually": "resolved",
    "error": "failed",
    "cancelled": "cancelled",
    "live": "done",
    "draining": "retries",
    "lost": "failed",
    "stopped": "cancelled",
    "paused": "paused",
    "open": "failed",
    "manually_resolved": "resolved",
    "permanently_failed": "failed",
    "stale": "failed",
    "warning": "retries",
    "healthy": "done",
    "running": "runs",
    "deleted": "cancelled",
}
"""Style class of each state; states that need the same attention share a class."""
LABELS = {
    "enqueued_for_orchestration": "result being stored",
    "enqueued_as_error_for_orchestration": "failure being stored",
    "in_progress": "running",
    "steps_in_process": "running",
    "evaluating_results": "running",
    "enqueuing_steps": "starting",
    "initializing": "starting",
    "error": "failed",
    "enqueued": "queued",
}
SHAPES = {
    "waiting_for_dependencies": "·",
    "blocked_by_failures": "✖",
    "initializing": "·",
    "live": "✔",
    "draining": "…",
    "lost": "✖",
    "stopped": "⊘",
    "paused": "‖",
    "open": "✖",
    "manually_resolved": "✔",
    "permanently_failed": "✖",
    "stale": "✖",
    "warning": "…",
    "healthy": "✔",
    "deleted": "⊘",
}


def group(state: str) -> str:
    """Return the style class: `done`, `runs`, `waits`, `retries`, `failed`, `cancelled`, `resolved` or `paused`."""
    return GROUPS.get(state, "waits")


def label(state: str) -> str:
    """Return the state in plain words."""
    return LABELS.get(state, state.replace("_", " "))


def shape(state: str) -> str:
    return SHAPES.get(state) or SYMBOLS.get(state, "▶")


def step_plan_of(plan: Plan, step: StepReport) -> StepPlan:
    """Return the step of the template that a step was made from.

    An instance of a batch worker has another name, and so has a step of `finally` that runs again (`report.2`).
    """
    names = (step.name, step.name.rpartition("_")[0], step.name.rpartition(".")[0])
    return next(plan.by_name[name] for name in names if name in plan.by_name)


def expressions_of(plan: Plan, step: StepPlan) -> list[tuple[str, str]]:
    """Return the conditions and the list of a step, each with its label."""
    entry = plan.by_name[plan.entries.get(step.name, step.name)]
    shown = [("Only if", entry.rules[0].when or "")] if entry is not step and entry.rules else []
    for number, rule in enumerate(step.rules, 1):
        condition = "otherwise" if rule.when is None else f"if {rule.when}"
        because = f", because: {rule.because}" if rule.because else ""
        shown.append((f"Rule {number}", f"{condition} then {', '.join(rule.then) or 'nothing'}{because}"))
    if (each := step.for_each) is not None:
        size = f", {each.batch_size} in one step" if each.batch_size > 1 else ""
        collects = ", failures are collected" if each.on_error == "collect" else ""
        shown.append(("For each", f"{each.name} in {each.items}{size}{collects}"))
    return shown
