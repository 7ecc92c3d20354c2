"""Errors that a handler raises to report a failed attempt. Only `retryable` decides what happens next."""

from __future__ import annotations

from typing import Any

from tasker.errors.base import TaskerError


class RetryableError(TaskerError):
    """Failure after which a later attempt may succeed; `retry_after` seconds override the template's delay."""

    retryable: bool = True
    error_type = "retryable_error"


class PermanentError(TaskerError):
    """Failure after which no later attempt can succeed: the step ends in `error` at once."""

    retryable: bool = False
    error_type = "permanent_error"


class TimeoutError(RetryableError):
    """Failure because an operation of the handler took too long."""

    error_type = "timeout"


class NetworkError(RetryableError):
    """Failure because a connection could not be made or broke."""

    error_type = "network_error"


class RateLimitError(RetryableError):
    """Failure because another service asks for fewer requests; set `retry_after` if it says when to retry."""

    error_type = "rate_limit_error"


class ServiceUnavailableError(RetryableError):
    """Failure because another service is temporarily down."""

    error_type = "service_unavailable"


class ResourceContentionError(RetryableError):
    """Failure because a resource that the handler needs (a lock, a quota, a row) is in use elsewhere."""

    error_type = "resource_contention"


class ValidationError(PermanentError):
    """Failure because the input is invalid and stays so."""

    error_type = "validation_error"


class NotFoundError(PermanentError):
    """Failure because the object that the handler works on does not exist."""

    error_type = "not_found"


class AuthenticationError(PermanentError):
    """Failure because credentials are missing or refused."""

    error_type = "authentication_error"


class AuthorizationError(PermanentError):
    """Failure because valid credentials lack the permission."""

    error_type = "authorization_error"


class ConfigurationError(PermanentError):
    """Failure because a setting is missing or wrong."""

    error_type = "configuration_error"


class BusinessLogicError(PermanentError):
    """Failure because a rule of the application forbids the operation."""

    error_type = "business_logic_error"


class StepExecutionError(TaskerError):
    """Failure that, raised inside `call`, equals returning that failure. `error_type` is free text."""

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
    """Class kept for code that catches it; Tasker has no foreign-function interface."""

    retryable: bool = True


class ConversionError(TaskerError):
    """Failure to convert a value to the requested type."""

    retryable: bool = False
    error_type = "conversion_error"
