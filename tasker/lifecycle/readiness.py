"""Why a step does not run now (F-24 .. F-30, F-40)."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum

from tasker.lifecycle.machines.step import StepState
from tasker.lifecycle.retry import is_eligible

ELIGIBLE = frozenset({StepState.PENDING, StepState.WAITING_FOR_RETRY})
"""The states from which a step becomes ready; `error` is permanent and not among them (F-28)."""


class BlockingReason(StrEnum):
    """The first thing that keeps a step from running, in the order in which they are looked at (F-40)."""

    DEPENDENCIES_NOT_SATISFIED = "dependencies_not_satisfied"
    RETRY_NOT_ELIGIBLE = "retry_not_eligible"
    INVALID_STATE = "invalid_state"
    BACKOFF_NOT_ELAPSED = "backoff_not_elapsed"


def blocking_reason(
    state: StepState,
    *,
    unmet_parents: int,
    attempts: int,
    retryable: bool,
    max_attempts: int,
    next_retry_at: datetime | None,
    now: datetime,
) -> BlockingReason | None:
    """What keeps the step from running, or None when it is ready (F-27, F-40).

    `attempts` counts finished executions. `next_retry_at` counts only in `waiting_for_retry`: what an earlier failure
    left behind never delays a pending step (F-26).
    """
    if unmet_parents:
        return BlockingReason.DEPENDENCIES_NOT_SATISFIED
    if not is_eligible(attempts, retryable, max_attempts):
        return BlockingReason.RETRY_NOT_ELIGIBLE
    if state not in ELIGIBLE:
        return BlockingReason.INVALID_STATE
    if state == StepState.WAITING_FOR_RETRY and next_retry_at is not None and next_retry_at > now:
        return BlockingReason.BACKOFF_NOT_ELAPSED
    return None
