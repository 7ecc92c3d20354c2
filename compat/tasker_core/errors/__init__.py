"""Errors that a handler raises to fail its attempt: the engine's classes with the attributes of tasker_core."""

from __future__ import annotations

from typing import Any

import tasker.errors as engine

__all__ = [
    "AuthenticationError",
    "AuthorizationError",
    "BusinessLogicError",
    "ConfigurationError",
    "FFIError",
    "NetworkError",
    "NotFoundError",
    "PermanentError",
    "RateLimitError",
    "ResourceContentionError",
    "RetryableError",
    "ServiceUnavailableError",
    "TaskerError",
    "TimeoutError",
    "ValidationError",
]


class TaskerError(engine.TaskerError):
    """Base class of the errors of handlers. Code, delay and context are stored in `metadata` as well."""

    def __init__(
        self,
        message: str,
        *,
        retryable: bool | None = None,
        metadata: dict[str, Any] | None = None,
        error_code: str | None = None,
        retry_after: int | float | None = None,
        context: dict[str, Any] | None = None,
    ) -> None:
        noted = {"error_code": error_code, "retry_after": retry_after}
        details = {key: value for key, value in noted.items() if value is not None}
        super().__init__(
            message,
            retryable=retryable,
            metadata={**(metadata or {}), **details, **(context or {})},
            error_code=error_code,
            retry_after=retry_after,
            context=context,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the class's name, the message, whether it is retryable, and the metadata."""
        return {
            "error_type": type(self).__name__,
            "message": self.message,
            "retryable": self.retryable,
            "metadata": self.metadata,
        }


class RetryableError(TaskerError, engine.RetryableError):
    """Error after which a later attempt may succeed."""


class PermanentError(TaskerError, engine.PermanentError):
    """Error after which no later attempt can succeed."""


class TimeoutError(RetryableError, engine.TimeoutError):
    """Error for an operation that took too long."""


class NetworkError(RetryableError, engine.NetworkError):
    """Error for a connection that could not be made or broke."""


class RateLimitError(RetryableError, engine.RateLimitError):
    """Error for a rate limit of another service."""


class ServiceUnavailableError(RetryableError, engine.ServiceUnavailableError):
    """Error for a temporary outage of another service."""


class ResourceContentionError(RetryableError, engine.ResourceContentionError):
    """Error for a locked resource."""


class ValidationError(PermanentError, engine.ValidationError):
    """Error for invalid input."""


class NotFoundError(PermanentError, engine.NotFoundError):
    """Error for a missing object."""


class AuthenticationError(PermanentError, engine.AuthenticationError):
    """Error for missing or invalid credentials."""


class AuthorizationError(PermanentError, engine.AuthorizationError):
    """Error for a missing permission."""


class ConfigurationError(PermanentError, engine.ConfigurationError):
    """Error for a missing or invalid setting."""


class BusinessLogicError(PermanentError, engine.BusinessLogicError):
    """Error for a violated rule of the application."""


class FFIError(TaskerError):
    """Error kept for code that raises or catches it."""
