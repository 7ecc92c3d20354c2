"""Redaction of sensitive input values in a handler's output, before the output is stored, sent or logged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tasker.contracts.execution import Failure
from tasker.execution.attempt.values import Attempt
from tasker.lifecycle.sensitive import Redactor, has_sensitive

MOST_SECRETS = 10_000
"""Number of sensitive values above which texts are withheld as a whole: replacing each would take too long."""


class OutcomeRedactor:
    """Redactor of the output of one attempt. Collects the sensitive values at the first output only."""

    __slots__ = ("_attempt", "_veil")

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._veil: Redactor | None = None

    def over(self, told: Any) -> Any:
        """Return a text or plain data redacted."""
        attempt = self._attempt
        if not has_sensitive(attempt.plan):
            return told
        if self._veil is None:
            self._veil = Redactor(attempt.plan, attempt.task_context, attempt.dependency_results, MOST_SECRETS)
        return self._veil.redact(told)

    def failure(self, failure: Failure) -> Failure:
        """Return the failure with its message, metadata, error type and error code redacted."""
        if not has_sensitive(self._attempt.plan):
            return failure
        shown = {
            "message": failure.message,
            "metadata": failure.metadata,
            "error_type": failure.error_type,
            "error_code": failure.error_code,
        }
        return replace(failure, **self.over(shown))
