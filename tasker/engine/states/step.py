"""States of a step and all legal transitions."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from tasker.engine.states.machine import Machine, StateGroup


class StepState(StrEnum):
    """State of a step, in the spelling of the database and the API."""

    PENDING = "pending"
    ENQUEUED = "enqueued"
    IN_PROGRESS = "in_progress"
    ENQUEUED_FOR_ORCHESTRATION = "enqueued_for_orchestration"
    ENQUEUED_AS_ERROR_FOR_ORCHESTRATION = "enqueued_as_error_for_orchestration"
    WAITING_FOR_RETRY = "waiting_for_retry"
    COMPLETE = "complete"
    ERROR = "error"
    CANCELLED = "cancelled"
    RESOLVED_MANUALLY = "resolved_manually"


class StepTransitionEvent(StrEnum):
    """Events of a step. A finished attempt is one of two events, by its outcome."""

    ENQUEUE = "Enqueue"
    START = "Start"
    ENQUEUE_FOR_ORCHESTRATION = "EnqueueForOrchestration"
    ENQUEUE_AS_ERROR_FOR_ORCHESTRATION = "EnqueueAsErrorForOrchestration"
    COMPLETE = "Complete"
    FAIL = "Fail"
    WAIT_FOR_RETRY = "WaitForRetry"
    RETRY = "Retry"
    RELEASE = "Release"
    DEFER = "Defer"
    HOLD = "Hold"
    CANCEL = "Cancel"
    RESET = "Reset"
    RESOLVE_MANUALLY = "ResolveManually"
    COMPLETE_MANUALLY = "CompleteManually"


_S, _E = StepState, StepTransitionEvent

TERMINAL = frozenset({_S.COMPLETE, _S.ERROR, _S.CANCELLED, _S.RESOLVED_MANUALLY})
SATISFYING = frozenset({_S.COMPLETE, _S.RESOLVED_MANUALLY})
PARKED = frozenset({_S.ENQUEUED_FOR_ORCHESTRATION, _S.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION})
PIPELINE = PARKED | {_S.ENQUEUED, _S.IN_PROGRESS}
SETTLED = frozenset({_S.COMPLETE, _S.ERROR, _S.WAITING_FOR_RETRY})
OPEN_TO_OPERATORS = tuple(state for state in StepState if state not in TERMINAL - {_S.ERROR})
"""The seven states in which an operator may cancel, resolve or complete a step, including `error`."""

GROUPS: Final[Mapping[str, StateGroup]] = {
    "done": StateGroup(SATISFYING, "Steps whose dependents may run."),
    "ended": StateGroup(TERMINAL, "Steps that the engine does not move again; operators may reopen `error`."),
    "parked": StateGroup(PARKED, "Steps that have run and whose outcome waits for an orchestrator."),
    "active": StateGroup(PIPELINE, "Steps that a task counts as active: queued, running or waiting for processing."),
    "under_way": StateGroup(
        PIPELINE | {_S.WAITING_FOR_RETRY}, "Steps that are active, or will be active again after a retry delay."
    ),
    "to_run": StateGroup(frozenset({_S.PENDING, _S.ENQUEUED}), "Steps that wait to run, in the queue or before it."),
    "timed": StateGroup(
        frozenset({_S.PENDING, _S.WAITING_FOR_RETRY}), "Steps that may wait for a time, with a row in `timers`."
    ),
    "settled": StateGroup(SETTLED, "Steps whose last attempt was processed, without a change since."),
    "failed": StateGroup(SETTLED - {_S.COMPLETE}, "Settled steps whose attempt failed."),
}
"""Groups of states by name; `tasker.step_is_NAME` in SQL."""

STEP = Machine[StepState, StepTransitionEvent](
    "step",
    {
        (_S.PENDING, _E.ENQUEUE): _S.ENQUEUED,
        (_S.ENQUEUED, _E.START): _S.IN_PROGRESS,
        (_S.IN_PROGRESS, _E.ENQUEUE_FOR_ORCHESTRATION): _S.ENQUEUED_FOR_ORCHESTRATION,
        (_S.ENQUEUED_FOR_ORCHESTRATION, _E.COMPLETE): _S.COMPLETE,
        # A parked success fails if its result proves unusable (a malformed outcome).
        (_S.ENQUEUED_FOR_ORCHESTRATION, _E.FAIL): _S.ERROR,
        (_S.IN_PROGRESS, _E.ENQUEUE_AS_ERROR_FOR_ORCHESTRATION): _S.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION,
        (_S.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION, _E.WAIT_FOR_RETRY): _S.WAITING_FOR_RETRY,
        (_S.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION, _E.FAIL): _S.ERROR,
        (_S.WAITING_FOR_RETRY, _E.RETRY): _S.PENDING,
        # Legacy transitions: a worker that settles its own step, and a claim of a step that was never enqueued.
        (_S.IN_PROGRESS, _E.COMPLETE): _S.COMPLETE,
        (_S.IN_PROGRESS, _E.FAIL): _S.ERROR,
        (_S.PENDING, _E.START): _S.IN_PROGRESS,
        # A failure before any worker claimed the step.
        (_S.PENDING, _E.FAIL): _S.ERROR,
        (_S.ENQUEUED, _E.FAIL): _S.ERROR,
        # A claim that no handler has seen is released without using an attempt.
        (_S.IN_PROGRESS, _E.RELEASE): _S.ENQUEUED,
        # An open circuit breaker defers the step without using an attempt.
        (_S.IN_PROGRESS, _E.DEFER): _S.WAITING_FOR_RETRY,
        # A pause returns enqueued steps to pending.
        (_S.ENQUEUED, _E.HOLD): _S.PENDING,
        # Operators: reset, resolve, and complete with data.
        (_S.ERROR, _E.RESET): _S.PENDING,
        **{(state, _E.CANCEL): _S.CANCELLED for state in OPEN_TO_OPERATORS},
        **{(state, _E.RESOLVE_MANUALLY): _S.RESOLVED_MANUALLY for state in OPEN_TO_OPERATORS},
        **{(state, _E.COMPLETE_MANUALLY): _S.COMPLETE for state in OPEN_TO_OPERATORS},
    },
)
