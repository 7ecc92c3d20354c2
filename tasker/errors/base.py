"""Base class of all Tasker errors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class TaskerError(Exception):
    """Base class of errors reported by Tasker or by a handler.

    Parameters: `retryable` overrides the class's default; `metadata` and `context` are free mappings stored with the
    failure; `error_code` is the application's own code; `retry_after` is the requested delay before the next attempt in
    seconds; `hint` is advice for the reader. `str(error)` is the message alone.
    """

    retryable: bool = True
    error_type: str = "handler_error"

    def __init__(
        self,
        message: str,
        *,
        retryable: bool | None = None,
        metadata: dict[str, Any] | None = None,
        error_code: str | None = None,
        retry_after: int | float | None = None,
        context: dict[str, Any] | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        if retryable is not None:
            self.retryable = retryable
        self.metadata: dict[str, Any] = dict(metadata or {})
        self.error_code = error_code
        self.retry_after = retry_after
        self.context: dict[str, Any] = dict(context or {})
        self.hint = hint

    def details(self) -> Mapping[str, Any]:
        """Return fields that this error class adds to the common ones; subclasses override it."""
        return {}

    def to_dict(self) -> dict[str, Any]:
        """Return the error as a mapping of plain values. Optional fields appear only if they are set."""
        optional = {
            "error_code": self.error_code,
            "retry_after": self.retry_after,
            "hint": self.hint,
            "metadata": self.metadata or None,
            "context": self.context or None,
            **self.details(),
        }
        fixed = {
            "error_class": type(self).__name__,
            "error_type": self.error_type,
            "message": self.message,
            "retryable": self.retryable,
        }
        return fixed | {key: value for key, value in optional.items() if value is not None}
