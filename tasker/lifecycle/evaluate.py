"""Progress of a task for readers. SQL (`tasker.task_target`) decides the task's state."""

from __future__ import annotations

from enum import StrEnum

from tasker.contracts.dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class StepCounts:
    """Counts of a task's steps after a write. Pending steps are the remainder of `total`."""

    total: int
    done: int = 0
    """`complete` and `resolved_manually`."""
    error: int = 0
    cancelled: int = 0
    active: int = 0
    """`enqueued`, `in_progress` and both parked states: steps that will report without intervention."""
    retry: int = 0
    """`waiting_for_retry`."""
    ready_held: int = 0
    """Pending steps whose parents are all satisfied, but that the enqueue window does not admit yet."""


class ExecutionStatus(StrEnum):
    """Status of a task's execution, derived from its steps."""

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
    """Return the status for readers; the first matching rule wins, blocked before ready.

    Every step in `error` blocks permanently: a retryable failure never gets there.
    """
    rules = (
        (counts.error > 0, ExecutionStatus.BLOCKED_BY_FAILURES),
        (counts.ready_held > 0, ExecutionStatus.HAS_READY_STEPS),
        (counts.active > 0, ExecutionStatus.PROCESSING),
        (counts.done == counts.total, ExecutionStatus.ALL_COMPLETE),
    )
    return next((status for fits, status in rules if fits), ExecutionStatus.WAITING_FOR_DEPENDENCIES)


def recommended_action(counts: StepCounts) -> str:
    """Return the next action for the execution status."""
    return _ACTIONS[execution_status(counts)]


def health_status(counts: StepCounts) -> str:
    """Return `blocked`, `recovering` (failures that will be retried) or `healthy`."""
    if counts.error:
        return "blocked"
    return "recovering" if counts.retry else "healthy"


def completion_percentage(counts: StepCounts) -> float:
    """Return the percentage of done steps; 100 for a task without steps."""
    return 100.0 * counts.done / counts.total if counts.total else 100.0
