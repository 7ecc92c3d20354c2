"""States and transitions of tasks, and the evaluation of a task from the states of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from tasker.dataclasses import dataclass
from tasker.engine.states.machine import Machine, StateGroup


class TaskState(StrEnum):
    """State of a task, in the spelling of the database and the API."""

    PENDING = "pending"
    INITIALIZING = "initializing"
    ENQUEUING_STEPS = "enqueuing_steps"
    STEPS_IN_PROCESS = "steps_in_process"
    EVALUATING_RESULTS = "evaluating_results"
    WAITING_FOR_DEPENDENCIES = "waiting_for_dependencies"
    WAITING_FOR_RETRY = "waiting_for_retry"
    BLOCKED_BY_FAILURES = "blocked_by_failures"
    COMPLETE = "complete"
    ERROR = "error"
    CANCELLED = "cancelled"
    RESOLVED_MANUALLY = "resolved_manually"


class TaskTransitionEvent(StrEnum):
    """Events of a task; `StepRepaired` follows an operator's repair of a failed step."""

    START = "Start"
    READY_STEPS_FOUND = "ReadyStepsFound"
    NO_STEPS_FOUND = "NoStepsFound"
    NO_DEPENDENCIES_READY = "NoDependenciesReady"
    STEPS_ENQUEUED = "StepsEnqueued"
    ENQUEUE_FAILED = "EnqueueFailed"
    ALL_STEPS_COMPLETED = "AllStepsCompleted"
    STEP_COMPLETED = "StepCompleted"
    STEP_FAILED = "StepFailed"
    ALL_STEPS_SUCCESSFUL = "AllStepsSuccessful"
    PERMANENT_FAILURE = "PermanentFailure"
    DEPENDENCIES_READY = "DependenciesReady"
    RETRY_READY = "RetryReady"
    GIVE_UP = "GiveUp"
    MANUAL_RESOLUTION = "ManualResolution"
    STEP_REPAIRED = "StepRepaired"
    CANCEL = "Cancel"
    RESET = "Reset"
    TIMEOUT = "Timeout"
    PROCESSOR_CRASHED = "ProcessorCrashed"


TaskPath = tuple[TaskState, ...]

_S, _E = TaskState, TaskTransitionEvent

TERMINAL = frozenset({_S.COMPLETE, _S.ERROR, _S.CANCELLED, _S.RESOLVED_MANUALLY})
PASSING = frozenset({_S.PENDING, _S.INITIALIZING, _S.ENQUEUING_STEPS, _S.EVALUATING_RESULTS})

GROUPS: Final[Mapping[str, StateGroup]] = {
    "final": StateGroup(TERMINAL, "Tasks that have ended; operators may reopen `error`."),
    "done": StateGroup(
        frozenset({_S.COMPLETE, _S.RESOLVED_MANUALLY}), "Tasks that were completed, or resolved by an operator."
    ),
    "troubled": StateGroup(TERMINAL - {_S.COMPLETE}, "Tasks that ended in another state than `complete`."),
    "blocked": StateGroup(
        frozenset({_S.BLOCKED_BY_FAILURES, _S.ERROR}), "Tasks that failed steps block, so that they need an operator."
    ),
    "passing": StateGroup(PASSING, "Transient states: no write leaves a task in one."),
    "retrying": StateGroup(
        frozenset({_S.STEPS_IN_PROCESS, _S.WAITING_FOR_RETRY}),
        "Tasks that wait for a retry, or are one transition away from that.",
    ),
}
"""Groups of states by name; `tasker.task_is_NAME` in SQL."""

TASK = Machine[TaskState, TaskTransitionEvent](
    "task",
    {
        (_S.PENDING, _E.START): _S.INITIALIZING,
        (_S.INITIALIZING, _E.READY_STEPS_FOUND): _S.ENQUEUING_STEPS,
        (_S.INITIALIZING, _E.NO_STEPS_FOUND): _S.COMPLETE,
        (_S.INITIALIZING, _E.NO_DEPENDENCIES_READY): _S.WAITING_FOR_DEPENDENCIES,
        (_S.ENQUEUING_STEPS, _E.STEPS_ENQUEUED): _S.STEPS_IN_PROCESS,
        (_S.ENQUEUING_STEPS, _E.ENQUEUE_FAILED): _S.ERROR,
        (_S.STEPS_IN_PROCESS, _E.ALL_STEPS_COMPLETED): _S.EVALUATING_RESULTS,
        (_S.STEPS_IN_PROCESS, _E.STEP_COMPLETED): _S.EVALUATING_RESULTS,
        (_S.STEPS_IN_PROCESS, _E.STEP_FAILED): _S.WAITING_FOR_RETRY,
        (_S.EVALUATING_RESULTS, _E.ALL_STEPS_SUCCESSFUL): _S.COMPLETE,
        (_S.EVALUATING_RESULTS, _E.READY_STEPS_FOUND): _S.ENQUEUING_STEPS,
        (_S.EVALUATING_RESULTS, _E.NO_DEPENDENCIES_READY): _S.WAITING_FOR_DEPENDENCIES,
        (_S.EVALUATING_RESULTS, _E.PERMANENT_FAILURE): _S.BLOCKED_BY_FAILURES,
        (_S.WAITING_FOR_DEPENDENCIES, _E.DEPENDENCIES_READY): _S.EVALUATING_RESULTS,
        (_S.WAITING_FOR_RETRY, _E.RETRY_READY): _S.ENQUEUING_STEPS,
        (_S.BLOCKED_BY_FAILURES, _E.GIVE_UP): _S.ERROR,
        (_S.BLOCKED_BY_FAILURES, _E.MANUAL_RESOLUTION): _S.RESOLVED_MANUALLY,
        # An operator repaired a step; without these transitions the task could not continue.
        (_S.BLOCKED_BY_FAILURES, _E.STEP_REPAIRED): _S.EVALUATING_RESULTS,
        (_S.ERROR, _E.STEP_REPAIRED): _S.ENQUEUING_STEPS,
        (_S.ERROR, _E.RESET): _S.PENDING,
        **{(state, _E.CANCEL): _S.CANCELLED for state in TaskState if state not in TERMINAL},
    },
)

_NOT_FOR_EVALUATION = frozenset({_E.RESET, _E.CANCEL, _E.ENQUEUE_FAILED})
_VIA = {_S.STEPS_IN_PROCESS: _S.ENQUEUING_STEPS, _S.ERROR: _S.BLOCKED_BY_FAILURES}
"""An evaluation enters these states only by this edge, so the history shows the reason."""


def task_path(state: TaskState, target: TaskState) -> TaskPath | None:
    """Return the states that one write passes through to `target`, without `state`, or None if there is no path.

    It is the shortest legal path and never passes through a final state; () if the task is already in `target`. From
    `steps_in_process` to itself it leads through evaluation, since a result that makes steps ready does so.
    """
    if target in PASSING:
        return None
    if state == target and target != _S.STEPS_IN_PROCESS:
        return ()
    if state in TERMINAL - {_S.ERROR}:
        return None
    if (state, target) == (_S.ERROR, _S.CANCELLED):  # an operator did what was left of the compensation of a cancel
        return (_S.ENQUEUING_STEPS, target)
    if target in (_S.CANCELLED, _S.RESOLVED_MANUALLY):
        return (target,) if target in TASK.legal(state).values() else None
    way = TASK.shortest_path(state, _VIA.get(target, target), without=_NOT_FOR_EVALUATION, ends=TERMINAL)
    return (*way, target) if way is not None and target in _VIA else way


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


def task_target(state: TaskState, counts: StepCounts, started: int, on_blocked: str = "give_up") -> TaskState:
    """Return the state to which one evaluation leads a task (`tasker.task_target` in SQL).

    `started` is the number of steps that became ready in this write. A permanent failure stops the task only when
    nothing else can run; then `on_blocked` says whether it gives up (`error`) or waits for an operator (`wait`).
    """
    if counts.done == counts.total:
        return _S.COMPLETE
    if started:
        return _S.STEPS_IN_PROCESS
    quiet = not counts.active and not counts.ready_held
    if quiet and not counts.retry and counts.error + counts.cancelled:
        return _S.BLOCKED_BY_FAILURES if on_blocked == "wait" else _S.ERROR
    # Only a task whose steps were in process can start to wait for a retry; the others have no edge to it.
    if counts.retry and (state == _S.WAITING_FOR_RETRY or (quiet and state == _S.STEPS_IN_PROCESS)):
        return _S.WAITING_FOR_RETRY
    return _S.WAITING_FOR_DEPENDENCIES


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
