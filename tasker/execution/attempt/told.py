"""Notifications of plugins about attempts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from tasker.contracts.dataclasses import maker_of
from tasker.contracts.hook_arguments import AttemptEnded, AttemptStarted, End
from tasker.execution.attempt.values import Attempt, AttemptCancelled, AttemptEnd, ClaimDeferred, ClaimReleased
from tasker.services.engine.exchange import Result

_make_started, _make_ended = maker_of(AttemptStarted), maker_of(AttemptEnded)


class AttemptListener:
    """Notifier of plugins at the start and end of attempts. A worker has one only if a plugin implements these hooks.

    `now` returns the time of day of this process.
    """

    def __init__(
        self,
        started: Callable[[AttemptStarted], None] | None,
        ended: Callable[[AttemptEnded], None] | None,
        now: Callable[[], datetime],
    ) -> None:
        self._started, self._ended, self._now = started, ended, now

    def started(self, attempt: Attempt) -> AttemptStarted:
        """Notify plugins that a claimed step is about to run. Returns the argument for `ended`."""
        told = _started(attempt, self._now())
        if self._started is not None:
            self._started(told)
        return told

    def ended(self, attempt: AttemptStarted, end: AttemptEnd) -> None:
        """Notify plugins of the outcome, which is about to be stored."""
        if self._ended is not None:
            self._ended(_ended(attempt, end, self._now()))


def _started(attempt: Attempt, now: datetime) -> AttemptStarted:
    claim, trace = attempt.claim, attempt.claim.trace
    return _make_started(
        claim.task_uuid,
        claim.step_uuid,
        claim.namespace,
        attempt.plan.name,
        claim.name,
        attempt.step.handler.callable,
        claim.attempt,
        claim.max_attempts,
        claim.token,
        claim.worker,
        claim.correlation_id,
        now,
        trace.traceparent if trace else None,
        trace.tracestate if trace else None,
    )


def _ended(attempt: AttemptStarted, end: AttemptEnd, now: datetime) -> AttemptEnded:
    if not isinstance(end, Result):
        return AttemptEnded(attempt, _unreported(end), ended_at=now)
    duration_ms, failure = end.duration_ms, end.failure
    if failure is None:
        return _make_ended(attempt, "succeeded", duration_ms, None, None, None, now)
    told = (failure.error_type, failure.message, failure.retryable)
    return AttemptEnded(attempt, "failed", duration_ms, *told, ended_at=now)


def _unreported(end: AttemptEnd) -> End:
    kinds: tuple[tuple[type[AttemptEnd], End], ...] = (
        (ClaimDeferred, "deferred"),
        (ClaimReleased, "released"),
        (AttemptCancelled, "cancelled"),
    )
    return next((word for kind, word in kinds if isinstance(end, kind)), "lost")
