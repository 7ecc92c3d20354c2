"""States of a task and all legal transitions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from tasker.lifecycle.machines.machine import Machine, StateGroup


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
    if target in (_S.CANCELLED, _S.RESOLVED_MANUALLY):
        return (target,) if target in TASK.legal(state).values() else None
    way = TASK.shortest_path(state, _VIA.get(target, target), without=_NOT_FOR_EVALUATION, ends=TERMINAL)
    return (*way, target) if way is not None and target in _VIA else way
