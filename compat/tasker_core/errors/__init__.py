"""What a handler raises to say how its attempt failed: the engine's classes with the published attributes."""

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
    """The root of what handlers raise. Code, delay and context are kept in `metadata` as well."""

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
        kept = {key: value for key, value in noted.items() if value is not None}
        super().__init__(
            message,
            retryable=retryable,
            metadata={**(metadata or {}), **kept, **(context or {})},
            error_code=error_code,
            retry_after=retry_after,
            context=context,
        )

    def to_dict(self) -> dict[str, Any]:
        """The class's name, the message, whether another attempt makes sense, and the metadata."""
        return {
            "error_type": type(self).__name__,
            "message": self.message,
            "retryable": self.retryable,
            "metadata": self.metadata,
        }


class RetryableError(TaskerError, engine.RetryableError):
    """A later attempt may succeed."""


class PermanentError(TaskerError, engine.PermanentError):
    """No later attempt can succeed."""


class TimeoutError(RetryableError, engine.TimeoutError):
    """Something took too long."""


class NetworkError(RetryableError, engine.NetworkError):
    """A connection could not be made or broke."""


class RateLimitError(RetryableError, engine.RateLimitError):
    """Another service asks for fewer requests."""


class ServiceUnavailableError(RetryableError, engine.ServiceUnavailableError):
    """Another service is down for now."""


class ResourceContentionError(RetryableError, engine.ResourceContentionError):
    """Something else holds what the handler needs."""


class ValidationError(PermanentError, engine.ValidationError):
    """The input is wrong and stays wrong."""


class NotFoundError(PermanentError, engine.NotFoundError):
    """What the handler should work on does not exist."""


class AuthenticationError(PermanentError, engine.AuthenticationError):
    """The credentials are missing or refused."""


class AuthorizationError(PermanentError, engine.AuthorizationError):
    """The permission is missing."""


class ConfigurationError(PermanentError, engine.ConfigurationError):
    """A setting is missing or wrong."""


class BusinessLogicError(PermanentError, engine.BusinessLogicError):
    """A rule of the application says no."""


class FFIError(TaskerError, engine.FFIError):
    """Kept for code that raises or catches it."""
