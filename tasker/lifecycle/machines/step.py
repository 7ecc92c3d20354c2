"""The ten states of a step and every legal transition (B-38 .. B-44)."""

from __future__ import annotations

from enum import StrEnum

from tasker.lifecycle.machines.machine import Machine


class StepState(StrEnum):
    """Where a step stands, in the spelling of the database and the API (B-38)."""

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


class StepEvent(StrEnum):
    """What can happen to a step (B-41). A finished attempt is one of two events, by its outcome."""

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


_S, _E = StepState, StepEvent

TERMINAL = frozenset({_S.COMPLETE, _S.ERROR, _S.CANCELLED, _S.RESOLVED_MANUALLY})
SATISFYING = frozenset({_S.COMPLETE, _S.RESOLVED_MANUALLY})
PARKED = frozenset({_S.ENQUEUED_FOR_ORCHESTRATION, _S.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION})
ACTIVE = PARKED | {_S.IN_PROGRESS}
PIPELINE = ACTIVE | {_S.ENQUEUED}
FAILED = frozenset({_S.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION, _S.WAITING_FOR_RETRY, _S.ERROR})
OPEN_TO_OPERATORS = tuple(state for state in StepState if state not in TERMINAL - {_S.ERROR})
"""The seven states in which a person may cancel, resolve or complete a step: `error` is one of them (D-15)."""

STEP = Machine[StepState, StepEvent](
    "step",
    {
        (_S.PENDING, _E.ENQUEUE): _S.ENQUEUED,
        (_S.ENQUEUED, _E.START): _S.IN_PROGRESS,
        (_S.IN_PROGRESS, _E.ENQUEUE_FOR_ORCHESTRATION): _S.ENQUEUED_FOR_ORCHESTRATION,
        (_S.ENQUEUED_FOR_ORCHESTRATION, _E.COMPLETE): _S.COMPLETE,
        # A result that turns out unusable (a malformed outcome) fails after it was parked as a success (B-43).
        (_S.ENQUEUED_FOR_ORCHESTRATION, _E.FAIL): _S.ERROR,
        (_S.IN_PROGRESS, _E.ENQUEUE_AS_ERROR_FOR_ORCHESTRATION): _S.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION,
        (_S.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION, _E.WAIT_FOR_RETRY): _S.WAITING_FOR_RETRY,
        (_S.ENQUEUED_AS_ERROR_FOR_ORCHESTRATION, _E.FAIL): _S.ERROR,
        (_S.WAITING_FOR_RETRY, _E.RETRY): _S.PENDING,
        # Legacy shapes: a worker that settles its own step, and a claim of a step that was never enqueued.
        (_S.IN_PROGRESS, _E.COMPLETE): _S.COMPLETE,
        (_S.IN_PROGRESS, _E.FAIL): _S.ERROR,
        (_S.PENDING, _E.START): _S.IN_PROGRESS,
        # A failure before any worker had the step.
        (_S.PENDING, _E.FAIL): _S.ERROR,
        (_S.ENQUEUED, _E.FAIL): _S.ERROR,
        # A claim that no handler ever saw goes back, without an attempt.
        (_S.IN_PROGRESS, _E.RELEASE): _S.ENQUEUED,
        # An open circuit breaker puts it off, without an attempt.
        (_S.IN_PROGRESS, _E.DEFER): _S.WAITING_FOR_RETRY,
        # What was enqueued before a pause goes back to the held steps.
        (_S.ENQUEUED, _E.HOLD): _S.PENDING,
        # Operators: B-42, B-41, and completing with data.
        (_S.ERROR, _E.RESET): _S.PENDING,
        **{(state, _E.CANCEL): _S.CANCELLED for state in OPEN_TO_OPERATORS},
        **{(state, _E.RESOLVE_MANUALLY): _S.RESOLVED_MANUALLY for state in OPEN_TO_OPERATORS},
        **{(state, _E.COMPLETE_MANUALLY): _S.COMPLETE for state in OPEN_TO_OPERATORS},
    },
)


def is_terminal(state: StepState) -> bool:
    """True when the engine will not move the step again; `error` stays open to operators (D-15)."""
    return state in TERMINAL


def is_error(state: StepState) -> bool:
    """True when the last attempt failed; a retry may still follow (B-40)."""
    return state in FAILED


def is_active(state: StepState) -> bool:
    """True from the claim until the result is settled (B-40)."""
    return state in ACTIVE


def is_in_processing_pipeline(state: StepState) -> bool:
    """True from the queue until the result is settled (B-40): what a task counts as active."""
    return state in PIPELINE


def is_ready_for_claiming(state: StepState) -> bool:
    """True when a worker may start the step: enqueued, or (legacy) pending (B-40, B-44)."""
    return state in {_S.ENQUEUED, _S.PENDING}


def satisfies_dependencies(state: StepState) -> bool:
    """True when steps below may run: complete or resolved by a person (B-40, F-24)."""
    return state in SATISFYING


def transition(state: StepState, event: StepEvent) -> StepState:
    """The step's state after `event`. Raises `IllegalTransition`, which lists what is legal (B-41, B-35)."""
    return STEP.transition(state, event)
