"""Failed attempts in the worker's log: one record each, with the traceback where it ends the step."""

from __future__ import annotations

import logging

from tasker.contracts.execution import Failure
from tasker.errors.traceback_text import exception_of, traceback_of
from tasker.execution.attempt.values import Attempt
from tasker.lifecycle.retry import Fail, decide_failure
from tasker.step_handler.outcome import exception_metadata

_log = logging.getLogger("tasker.failures")
MESSAGE_LIMIT = 500
"""Characters of a failure's message in the log; all of it is in the database."""


def failed_here(error: Exception) -> Failure:
    """The failure of a step whose attempt the worker itself could not carry through."""
    message = f"the worker failed while it ran this step: {error!r}"
    return Failure(message, "worker_error", retryable=True, metadata=exception_metadata(error))


def log_failure(attempt: Attempt, failure: Failure) -> None:
    """A WARNING for a failure that is tried again, an ERROR with the traceback for one that ends the step."""
    decision = decide_failure(attempt.step.retry, attempt.claim.attempt, failure, 0.5)
    if isinstance(decision, Fail):
        traceback = traceback_of(failure.metadata)
        rest = f"\n{traceback.rstrip()}" if traceback else ""
        _log.error("step_failed %s reason=%s%s", _fields(attempt, failure), decision.reason, rest)
    else:
        _log.warning("attempt_failed %s", _fields(attempt, failure))


def _fields(attempt: Attempt, failure: Failure) -> str:
    claim, raised = attempt.claim, exception_of(failure.metadata)
    return (
        f"step={claim.name} task={claim.task_uuid} handler={attempt.step.handler.callable}"
        f" attempt={claim.attempt}/{claim.max_attempts} error_type={failure.error_type}"
        + (f" exception={raised!r}" if raised else "")
        + f" message={' '.join(failure.message.split())[:MESSAGE_LIMIT]!r}"
    )
