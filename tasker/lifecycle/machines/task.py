"""The twelve states of a task and every legal transition (B-31 .. B-35)."""

from __future__ import annotations

from enum import StrEnum

from tasker.lifecycle.machines.machine import Machine


class TaskState(StrEnum):
    """Where a task stands, in the spelling of the database and the API (B-31)."""

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


class TaskEvent(StrEnum):
    """What can happen to a task (B-34; `StepRepaired` is D-16's)."""

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


_S, _E = TaskState, TaskEvent

TERMINAL = frozenset({_S.COMPLETE, _S.ERROR, _S.CANCELLED, _S.RESOLVED_MANUALLY})
OWNED = frozenset({_S.INITIALIZING, _S.ENQUEUING_STEPS, _S.STEPS_IN_PROCESS, _S.EVALUATING_RESULTS})
WAITING = frozenset({_S.WAITING_FOR_DEPENDENCIES, _S.WAITING_FOR_RETRY, _S.BLOCKED_BY_FAILURES})
PROCESSABLE = frozenset({_S.PENDING, _S.WAITING_FOR_DEPENDENCIES, _S.WAITING_FOR_RETRY})

TASK = Machine[TaskState, TaskEvent](
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
        # D-16: an operator repaired a step; without these a task could not go on after a repair.
        (_S.BLOCKED_BY_FAILURES, _E.STEP_REPAIRED): _S.EVALUATING_RESULTS,
        (_S.ERROR, _E.STEP_REPAIRED): _S.ENQUEUING_STEPS,
        (_S.ERROR, _E.RESET): _S.PENDING,
        **{(state, _E.CANCEL): _S.CANCELLED for state in TaskState if state not in TERMINAL},
    },
)


def is_terminal(state: TaskState) -> bool:
    """True when the task has ended. `error` is terminal for the engine and open to operators (D-15, D-16)."""
    return state in TERMINAL


def requires_ownership(state: TaskState) -> bool:
    """True in the states in which a processor works on the task; it is recorded, never required to match (B-65)."""
    return state in OWNED


def is_active(state: TaskState) -> bool:
    """True while somebody works on the task: the states of `requires_ownership` (B-32)."""
    return state in OWNED


def is_waiting(state: TaskState) -> bool:
    """True while the task waits for steps, for a retry, or for a person (B-32)."""
    return state in WAITING


def can_be_processed(state: TaskState) -> bool:
    """True in the states from which any processor may pick the task up (B-32)."""
    return state in PROCESSABLE


def transition(state: TaskState, event: TaskEvent) -> TaskState:
    """The task's state after `event`. Raises `IllegalTransition`, which lists what is legal (B-33, B-35)."""
    return TASK.transition(state, event)
