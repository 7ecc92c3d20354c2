"""Reports of attempts to plugins and to the log."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from time import monotonic
from typing import Any

from tasker.engine.exchange import Result
from tasker.engine.retry import Fail, decide_failure
from tasker.errors.tracebacks import exception_of, traceback_of
from tasker.execution.attempt.attempt import (
    AttemptCancelled,
    AttemptEnd,
    ClaimDeferred,
    ClaimReleased,
    ClaimSuspended,
)
from tasker.handlers.claims import Claim, Failure
from tasker.handlers.normalize import exception_metadata
from tasker.logging.lines import ids_of, log_line
from tasker.plugins.hook_arguments import AttemptEnded, AttemptStarted, End
from tasker.template.plan import Plan, StepPlan

_logger = logging.getLogger("tasker.execution")


def info(event: str, claim: Claim, **fields: object) -> None:
    _write(logging.INFO, event, claim, fields)


def warning(event: str, claim: Claim | None, **fields: object) -> None:
    _write(logging.WARNING, event, claim, fields)


def _write(level: int, event: str, claim: Claim | None, fields: dict[str, object]) -> None:
    if _logger.isEnabledFor(level):
        log_line(_logger, level, event, {**(ids_of(claim) if claim else {}), **fields})


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

    def started(self, claim: Claim, plan: Plan) -> AttemptStarted:
        """Notify plugins that a claimed step is about to run. Returns the argument for `ended`."""
        start_event = _started(claim, plan, self._now())
        if self._started is not None:
            self._started(start_event)
        return start_event

    def ended(self, attempt: AttemptStarted, end: AttemptEnd) -> None:
        """Notify plugins of the outcome, which is about to be stored."""
        if self._ended is not None:
            self._ended(_ended(attempt, end, self._now()))


def _started(claim: Claim, plan: Plan, now: datetime) -> AttemptStarted:
    trace = claim.trace
    return AttemptStarted(
        claim.task_uuid,
        claim.step_uuid,
        claim.namespace,
        plan.name,
        claim.name,
        plan.steps[claim.ordinal].handler.callable,
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
        return AttemptEnded(attempt, "succeeded", duration_ms, None, None, None, now)
    failure_fields = (failure.error_type, failure.message, failure.retryable)
    return AttemptEnded(attempt, "failed", duration_ms, *failure_fields, ended_at=now)


def _unreported(end: AttemptEnd) -> End:
    kinds: tuple[tuple[type[AttemptEnd], End], ...] = (
        (ClaimDeferred, "deferred"),
        (ClaimSuspended, "deferred"),
        (ClaimReleased, "released"),
        (AttemptCancelled, "cancelled"),
    )
    return next((word for kind, word in kinds if isinstance(end, kind)), "lost")


_log = logging.getLogger("tasker.failures")
FOR_GOOD = {"attempts_exhausted": "Step execution failed after max retries, will not retry further"}
REFUSED = "Step execution failed permanently"
MESSAGE_LIMIT = 500
"""Characters of a failure's message in the log; the database has the whole message."""


def failed_here(error: BaseException, canceller: str = "code outside of handlers") -> Failure:
    """The failure of a step whose attempt the worker itself could not carry through; `canceller` has cancelled it."""
    message = f"the worker failed while it ran this step: {error!r}"
    if isinstance(error, asyncio.CancelledError):
        message = f"the asyncio task that ran this step was cancelled by {canceller}"
    return Failure(message, "worker_error", retryable=True, metadata=exception_metadata(error))


def log_failure(claim: Claim, step: StepPlan, failure: Failure) -> None:
    """Log a WARNING for a failure that will be retried, an ERROR with the traceback for one that ends the step."""
    decision = decide_failure(step.retry, claim.attempt, failure, 0.5, claim.times(monotonic()))
    if isinstance(decision, Fail):
        phrase = FOR_GOOD.get(decision.reason, REFUSED)
        fields = _fields(claim, step, failure) | {"operation": "step_failed", "reason": decision.reason}
        log_line(_log, logging.ERROR, phrase, fields, detail=(traceback_of(failure.metadata) or "").rstrip())
    else:
        fields = _fields(claim, step, failure) | {"operation": "attempt_failed"}
        log_line(_log, logging.WARNING, "Step execution failed, will retry", fields)


def _fields(claim: Claim, step: StepPlan, failure: Failure) -> dict[str, Any]:
    raised = exception_of(failure.metadata)
    return {
        **ids_of(claim),
        "error": " ".join(failure.message.split())[:MESSAGE_LIMIT],
        "error_type": failure.error_type,
        **({"context": raised} if raised else {}),
        "retry_count": claim.attempt - 1,
        "max_retries": claim.max_attempts - 1,
        "handler": step.handler.callable,
    }
