"""Where a task goes after a write that changed its steps, told once more (rule 10): the SQL is held against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tasker.engine.states import task as evaluate
from tasker.engine.states.task import TaskState, task_path

OnBlocked = Literal["give_up", "wait"]


@dataclass(frozen=True, slots=True)
class StepCounts(evaluate.StepCounts):
    """A task's steps after a write."""

    enqueued_now: int = 0
    """Of `active`: what this very write enqueued or handed over."""


def evaluate_task(state: TaskState, counts: StepCounts, on_blocked: OnBlocked = "give_up") -> list[TaskState]:
    """The states that the task passes through now, without the one it is in; [] when it stays.

    The way is the shortest legal one; when steps became ready it always leads through `enqueuing_steps`. A permanent
    failure stops the task only when nothing else can run; then `on_blocked` says whether it gives up (`error`) or
    waits for a person. `error` is evaluated like an open state: the engine asks only after an operator's repair. The
    other final states answer [].
    """
    return list(task_path(state, _target(state, counts, on_blocked)) or ())


def _target(state: TaskState, counts: StepCounts, on_blocked: OnBlocked) -> TaskState:
    if counts.done == counts.total:
        return TaskState.COMPLETE
    if counts.enqueued_now:
        return TaskState.STEPS_IN_PROCESS
    if _is_blocked(counts):
        return TaskState.BLOCKED_BY_FAILURES if on_blocked == "wait" else TaskState.ERROR
    return _waiting(state, counts)


def _is_blocked(counts: StepCounts) -> bool:
    can_move = counts.active or counts.retry or counts.ready_held
    return not can_move and counts.error + counts.cancelled > 0


def _waiting(state: TaskState, counts: StepCounts) -> TaskState:
    """Only a task whose steps were in process can start to wait for a retry; the others have no edge to it."""
    if not counts.retry:
        return TaskState.WAITING_FOR_DEPENDENCIES
    quiet = not counts.active and not counts.ready_held
    if state == TaskState.WAITING_FOR_RETRY or (quiet and state == TaskState.STEPS_IN_PROCESS):
        return TaskState.WAITING_FOR_RETRY
    return TaskState.WAITING_FOR_DEPENDENCIES
