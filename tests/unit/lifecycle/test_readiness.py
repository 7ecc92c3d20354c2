"""Which steps may run now, and why the others may not."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from tasker.lifecycle.machines.step import StepState
from tasker.lifecycle.readiness import BlockingReason, blocking_reason

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PAST, FUTURE = NOW - timedelta(seconds=1), NOW + timedelta(seconds=1)
BUSY = ["enqueued", "in_progress", "enqueued_for_orchestration", "enqueued_as_error_for_orchestration"]
FINAL = ["complete", "resolved_manually", "cancelled"]


@pytest.mark.parametrize(
    ("attempts", "max_attempts", "retryable", "state", "next_retry_at", "unmet", "reason"),
    [
        (0, 3, True, "pending", None, 0, None),
        (0, 1, False, "pending", None, 0, None),
        (1, 3, True, "waiting_for_retry", FUTURE, 0, "backoff_not_elapsed"),
        (1, 3, True, "waiting_for_retry", PAST, 0, None),
        (1, 3, True, "waiting_for_retry", NOW, 0, None),
        (2, 2, True, "waiting_for_retry", PAST, 0, "retry_not_eligible"),
        (1, 3, False, "waiting_for_retry", PAST, 0, "retry_not_eligible"),
        (1, 3, True, "error", PAST, 0, "invalid_state"),
        (0, 3, True, "pending", None, 1, "dependencies_not_satisfied"),
        (1, 3, True, "pending", FUTURE, 0, None),
        *[(1, 3, True, state, None, 0, "invalid_state") for state in (*BUSY, *FINAL)],
    ],
)
def test_a_step_is_ready_or_says_what_it_waits_for(
    attempts, max_attempts, retryable, state, next_retry_at, unmet, reason
) -> None:
    found = blocking_reason(
        StepState(state),
        unmet_parents=unmet,
        attempts=attempts,
        retryable=retryable,
        max_attempts=max_attempts,
        next_retry_at=next_retry_at,
        now=NOW,
    )
    assert found == (BlockingReason(reason) if reason else None)
