"""Views of a task's input, and of a task with its results and history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any

from tasker.dataclasses import dataclass
from tasker.views.model import published
from tasker.views.task_lists import TransitionDetail
from tasker.views.tasks import Task, TaskReport


@published("TaskContextResponse")
@dataclass(frozen=True, slots=True)
class TaskContext:
    """Input of a task and its progress."""

    task_uuid: str
    named_task_uuid: str
    status: str
    execution_status: str
    recommended_action: str | None
    health_status: str
    completion_percentage: str
    total_steps: int
    pending_steps: int
    in_progress_steps: int
    completed_steps: int
    failed_steps: int
    ready_steps: int
    enqueued_steps: int
    context: Mapping[str, Any]


@published("StepDetails", aliases={"state": "current_state"})
@dataclass(frozen=True, slots=True)
class StepDetails:
    """Step of a task with its result."""

    step_uuid: str
    name: str
    state: str
    attempts: int
    result: Any
    error: Mapping[str, Any] | None
    duration_ms: int | None


@published("Transition", aliases={"at": "timestamp"})
@dataclass(frozen=True, slots=True)
class Transition:
    """State change of a step, or of the task if `step` is null."""

    step: str | None
    from_state: str | None
    to_state: str
    at: datetime


@published("TaskDetailsResponse")
@dataclass(frozen=True, slots=True)
class TaskDetails:
    """Task with the results of its steps and its complete history."""

    task: Task
    steps: Sequence[StepDetails]
    state_transitions: Sequence[Transition]
    step_transitions: Sequence[Transition]


def task_context(task: Task, enqueued_steps: int) -> TaskContext:
    """Return the input of a task and its progress."""
    same: dict[str, Any] = {field.name: getattr(task, field.name, None) for field in fields(TaskContext)}
    percentage = f"{task.completion_percentage:.2f}"
    return TaskContext(**{**same, "enqueued_steps": enqueued_steps, "completion_percentage": percentage})


def task_details(task: Task, report: TaskReport, history: Sequence[TransitionDetail]) -> TaskDetails:
    """Return a task with the results of its steps and its history."""
    steps = [
        StepDetails(step.step_uuid, step.name, step.state, step.attempts, step.result, step.error, step.duration_ms)
        for step in report.steps.values()
    ]
    moves = {kind: [_transition(row) for row in history if row.kind == kind] for kind in ("task", "step")}
    return TaskDetails(task, steps, moves["task"], moves["step"])


def _transition(row: TransitionDetail) -> Transition:
    return Transition(row.step, row.from_state, row.to_state, row.at)
