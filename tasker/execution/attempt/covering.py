"""What a handler tells, without the sensitive values that it was given: before it is stored, sent or logged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tasker.contracts.execution import Failure
from tasker.execution.attempt.values import Attempt
from tasker.lifecycle.sensitive import Redactor, has_sensitive

MOST_SECRETS = 10_000
"""Where a step knows more, nothing of what it tells about a failure is kept: they cannot be looked for in time."""


class OutcomeRedactor:
    """Covers what one attempt tells. Costs nothing until it tells something."""

    __slots__ = ("_attempt", "_veil")

    def __init__(self, attempt: Attempt) -> None:
        self._attempt = attempt
        self._veil: Redactor | None = None

    def over(self, told: Any) -> Any:
        """A text or plain data."""
        attempt = self._attempt
        if not has_sensitive(attempt.plan):
            return told
        if self._veil is None:
            self._veil = Redactor(attempt.plan, attempt.task_context, attempt.dependency_results, MOST_SECRETS)
        return self._veil.redact(told)

    def failure(self, failure: Failure) -> Failure:
        """A failure with its message, its traceback and whatever else it says covered."""
        if not has_sensitive(self._attempt.plan):
            return failure
        shown = {"message": failure.message, "metadata": failure.metadata, "error_code": failure.error_code}
        return replace(failure, **self.over(shown))
