"""Where a task goes after a write that changed its steps, and how its progress reads (design rule 10, F-47 .. F-51)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from typing import Literal

from tasker.lifecycle.machines.task import TASK, TERMINAL, TaskEvent, TaskState

OnBlocked = Literal["give_up", "wait"]

_NOT_FOR_EVALUATION = frozenset({TaskEvent.RESET, TaskEvent.CANCEL, TaskEvent.ENQUEUE_FAILED})
_FINISHED = TERMINAL - {TaskState.ERROR}


@dataclass(frozen=True, slots=True)
class StepCounts:
    """A task's steps after the write, by what they mean to the task. Pending steps are what is left of `total`."""

    total: int
    done: int = 0
    """`complete` and `resolved_manually` (F-24)."""
    error: int = 0
    cancelled: int = 0
    active: int = 0
    """`enqueued`, `in_progress` and both parked states: anything that will report without help (F-47)."""
    retry: int = 0
    """`waiting_for_retry`."""
    ready_held: int = 0
    """Pending with every parent satisfied, held back by the enqueue window."""
    enqueued_now: int = 0
    """Of `active`: what this very write enqueued or handed over."""


def evaluate_task(state: TaskState, counts: StepCounts, on_blocked: OnBlocked = "give_up") -> list[TaskState]:
    """The states that the task passes through now, without the one it is in; [] when it stays.

    The way is the shortest legal one; when steps became ready it always leads through `enqueuing_steps`. A permanent
    failure stops the task only when nothing else can run; then `on_blocked` says whether it gives up (`error`) or
    waits for a person. `error` is evaluated like an open state: the engine asks only after an operator's repair
    (D-16). The other final states answer [].
    """
    if state in _FINISHED:
        return []
    if counts.done == counts.total:
        return list(path_to(state, TaskState.COMPLETE))
    if counts.enqueued_now:
        return [*path_to(state, TaskState.ENQUEUING_STEPS), TaskState.STEPS_IN_PROCESS]
    if _is_blocked(counts):
        return _blocked(state, on_blocked)
    return list(path_to(state, _waiting(state, counts)))


@cache
def path_to(state: TaskState, target: TaskState) -> tuple[TaskState, ...]:
    """The shortest legal way of an evaluation, without `state`; it never passes through a final state."""
    path = TASK.shortest_path(state, target, without=_NOT_FOR_EVALUATION, ends=TERMINAL)
    if path is None:
        raise ValueError(f"no evaluation leads from {state} to {target}")
    return path


def _is_blocked(counts: StepCounts) -> bool:
    can_move = counts.active or counts.retry or counts.ready_held
    return not can_move and counts.error + counts.cancelled > 0


def _blocked(state: TaskState, on_blocked: OnBlocked) -> list[TaskState]:
    if on_blocked == "wait":
        return list(path_to(state, TaskState.BLOCKED_BY_FAILURES))
    if state == TaskState.ERROR:
        return []
    return [*path_to(state, TaskState.BLOCKED_BY_FAILURES), TaskState.ERROR]


def _waiting(state: TaskState, counts: StepCounts) -> TaskState:
    """Only a task whose steps were in process can start to wait for a retry; the others have no edge to it (E-8)."""
    if not counts.retry:
        return TaskState.WAITING_FOR_DEPENDENCIES
    quiet = not counts.active and not counts.ready_held
    if state == TaskState.WAITING_FOR_RETRY or (quiet and state == TaskState.STEPS_IN_PROCESS):
        return TaskState.WAITING_FOR_RETRY
    return TaskState.WAITING_FOR_DEPENDENCIES


class ExecutionStatus(StrEnum):
    """How a task's execution stands, derived from its steps (F-49)."""

    BLOCKED_BY_FAILURES = "blocked_by_failures"
    HAS_READY_STEPS = "has_ready_steps"
    PROCESSING = "processing"
    ALL_COMPLETE = "all_complete"
    WAITING_FOR_DEPENDENCIES = "waiting_for_dependencies"


_ACTIONS = {
    ExecutionStatus.BLOCKED_BY_FAILURES: "handle_failures",
    ExecutionStatus.HAS_READY_STEPS: "execute_ready_steps",
    ExecutionStatus.PROCESSING: "wait_for_completion",
    ExecutionStatus.ALL_COMPLETE: "finalize_task",
    ExecutionStatus.WAITING_FOR_DEPENDENCIES: "wait_for_dependencies",
}


def execution_status(counts: StepCounts) -> ExecutionStatus:
    """The status for readers; the first rule that fits wins, blocked before ready (F-48, F-49).

    Every step in `error` blocks for good: a retryable failure never gets there (F-28).
    """
    rules = (
        (counts.error > 0, ExecutionStatus.BLOCKED_BY_FAILURES),
        (counts.ready_held > 0, ExecutionStatus.HAS_READY_STEPS),
        (counts.active > 0, ExecutionStatus.PROCESSING),
        (counts.done == counts.total, ExecutionStatus.ALL_COMPLETE),
    )
    return next((status for fits, status in rules if fits), ExecutionStatus.WAITING_FOR_DEPENDENCIES)


def recommended_action(counts: StepCounts) -> str:
    """What should happen next, by the execution status (F-50)."""
    return _ACTIONS[execution_status(counts)]


def health_status(counts: StepCounts) -> str:
    """`blocked`, `recovering` (failures that will be retried) or `healthy` (F-50)."""
    if counts.error:
        return "blocked"
    return "recovering" if counts.retry else "healthy"


def completion_percentage(counts: StepCounts) -> float:
    """Done steps per hundred; 100 for a task without steps (F-47)."""
    return 100.0 * counts.done / counts.total if counts.total else 100.0
