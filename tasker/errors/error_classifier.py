"""Whether an exception is worth another attempt."""

from __future__ import annotations

import builtins

from tasker.errors.base import TaskerError
from tasker.errors.handler import (
    AuthenticationError,
    AuthorizationError,
    BusinessLogicError,
    ConfigurationError,
    NetworkError,
    NotFoundError,
    PermanentError,
    RateLimitError,
    ResourceContentionError,
    RetryableError,
    ServiceUnavailableError,
    TimeoutError,
    ValidationError,
)


class ErrorClassifier:
    """Sorts exceptions: a Tasker error says so itself, known classes are listed, the rest follows the default.

    Subclass it and extend the two tuples to teach it the exceptions of your libraries.
    """

    PERMANENT_ERROR_CLASSES: tuple[type[Exception], ...] = (
        PermanentError,
        ValidationError,
        NotFoundError,
        AuthenticationError,
        AuthorizationError,
        ConfigurationError,
        BusinessLogicError,
    )
    RETRYABLE_ERROR_CLASSES: tuple[type[Exception], ...] = (
        RetryableError,
        TimeoutError,
        NetworkError,
        RateLimitError,
        ServiceUnavailableError,
        ResourceContentionError,
        builtins.TimeoutError,
        builtins.ConnectionError,
    )

    def __init__(self, *, default_retryable: bool = True) -> None:
        self.default_retryable = default_retryable

    def retryable(self, exception: BaseException) -> bool:
        """True when another attempt may succeed."""
        if isinstance(exception, TaskerError):
            return exception.retryable
        if isinstance(exception, self.PERMANENT_ERROR_CLASSES):
            return False
        return self.default_retryable or isinstance(exception, self.RETRYABLE_ERROR_CLASSES)

    def permanent(self, exception: BaseException) -> bool:
        """True when no other attempt can succeed."""
        return not self.retryable(exception)

    def error_type(self, exception: BaseException) -> str:
        """The `error_type` of the failure that the exception becomes."""
        if isinstance(exception, TaskerError):
            return exception.error_type
        return "timeout" if isinstance(exception, builtins.TimeoutError) else "handler_error"

    def classify(self, exception: BaseException) -> dict[str, bool | str]:
        """Everything at once: `retryable`, `permanent`, `error_type`, `error_class`."""
        retryable = self.retryable(exception)
        return {
            "retryable": retryable,
            "permanent": not retryable,
            "error_type": self.error_type(exception),
            "error_class": type(exception).__name__,
        }


_default = ErrorClassifier()


def get_classifier() -> ErrorClassifier:
    """The classifier with the default rules."""
    return _default


def is_retryable(exception: BaseException) -> bool:
    """True when another attempt may succeed, by the default rules."""
    return _default.retryable(exception)


def is_permanent(exception: BaseException) -> bool:
    """True when no other attempt can succeed, by the default rules."""
    return _default.permanent(exception)
