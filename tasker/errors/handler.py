"""What a handler raises to say how its attempt failed. `retryable` alone decides what happens next."""

from __future__ import annotations

from typing import Any

from tasker.errors.base import TaskerError


class RetryableError(TaskerError):
    """The attempt failed and a later one may succeed; `retry_after` seconds override the template's delay."""

    retryable: bool = True
    error_type = "retryable_error"


class PermanentError(TaskerError):
    """The attempt failed and no later one can succeed: the step ends in `error` at once."""

    retryable: bool = False
    error_type = "permanent_error"


class TimeoutError(RetryableError):
    """Something the handler waited for took too long."""

    error_type = "timeout"


class NetworkError(RetryableError):
    """A connection could not be made or broke."""

    error_type = "network_error"


class RateLimitError(RetryableError):
    """Another service asks for fewer requests; set `retry_after` when it says when to come back."""

    error_type = "rate_limit_error"


class ServiceUnavailableError(RetryableError):
    """Another service is down for now."""

    error_type = "service_unavailable"


class ResourceContentionError(RetryableError):
    """Something else holds what the handler needs (a lock, a quota, a row)."""

    error_type = "resource_contention"


class ValidationError(PermanentError):
    """The input is wrong and stays wrong."""

    error_type = "validation_error"


class NotFoundError(PermanentError):
    """What the handler was asked to work on does not exist."""

    error_type = "not_found"


class AuthenticationError(PermanentError):
    """The credentials are missing or refused."""

    error_type = "authentication_error"


class AuthorizationError(PermanentError):
    """The credentials are fine, the permission is missing."""

    error_type = "authorization_error"


class ConfigurationError(PermanentError):
    """A setting is missing or wrong."""

    error_type = "configuration_error"


class BusinessLogicError(PermanentError):
    """A rule of the application says no."""

    error_type = "business_logic_error"


class StepExecutionError(TaskerError):
    """Raised inside `call`, it equals returning that failure. `error_type` is free text."""

    def __init__(
        self,
        message: str,
        error_type: str = "step_execution_error",
        retryable: bool = True,
        **fields: Any,
    ) -> None:
        super().__init__(message, retryable=retryable, **fields)
        self.error_type = error_type


class FFIError(TaskerError):
    """Kept for code that catches it; nothing in Tasker crosses a foreign-function border."""

    retryable: bool = True


class ConversionError(TaskerError):
    """A value could not be turned into the type that was asked for."""

    retryable: bool = False
    error_type = "conversion_error"
