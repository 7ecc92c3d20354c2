"""Log records of failed attempts: one each, with the traceback where the failure ends the step."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

from tasker.contracts.execution import Claim, Failure
from tasker.contracts.plan import StepPlan
from tasker.errors.traceback_text import exception_of, traceback_of
from tasker.lifecycle.retry import Fail, decide_failure
from tasker.log_lines import ids_of, log_line
from tasker.step_handler.outcome import exception_metadata

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
    decision = decide_failure(step.retry, claim.attempt, failure, 0.5)
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
