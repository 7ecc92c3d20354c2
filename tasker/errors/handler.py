"""Exceptions that handlers raise, and their classification as retryable or permanent."""

from __future__ import annotations

import builtins
import sys
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


MALFORMED = "validation_error"
"""The `error_type` of a request that could not be sent at all; every attempt would fail the same way."""


class ErrorClassifier:
    """Classifier of exceptions as retryable or permanent.

    A Tasker error says itself whether it is retryable, known classes are listed, the rest follows the default.

    Subclass it and extend the two tuples to classify the exceptions of your libraries. The entry-point group
    `tasker.error_classifiers` of an installed package names the subclass used for handlers:

        [project.entry-points."tasker.error_classifiers"]
        shop = "shop.errors:ShopErrors"
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
    """Retryable classes; `httpx.TransportError` is retryable as well."""
    PROGRAMMING_ERROR_CLASSES: tuple[type[Exception], ...] = (
        TypeError,
        KeyError,
        AttributeError,
        ImportError,
        NameError,
    )
    """Classes that are permanent unless a rule, or one of the tuples above, says otherwise."""

    def __init__(self, *, default_retryable: bool = True) -> None:
        self.default_retryable = default_retryable

    def retryable(self, exception: BaseException) -> bool:
        """Return True if another attempt may succeed."""
        if isinstance(exception, TaskerError):
            return exception.retryable
        if isinstance(exception, self.PERMANENT_ERROR_CLASSES) or http_problem(exception) == MALFORMED:
            return False
        if isinstance(exception, self.RETRYABLE_ERROR_CLASSES) or http_problem(exception) is not None:
            return True
        return self.default_retryable and self.reason(exception) is None

    def reason(self, exception: BaseException) -> str | None:
        """Return why an exception that no class above names is permanent by default, or None if it is not."""
        known: tuple[type[Exception], ...] = (TaskerError, *self.PERMANENT_ERROR_CLASSES, *self.RETRYABLE_ERROR_CLASSES)
        if isinstance(exception, known):
            return None
        name = type(exception).__name__
        if isinstance(exception, self.PROGRAMMING_ERROR_CLASSES):
            return f"a {name} is a programming error; `retry: {{only_on: [{name}]}}` retries it"
        status = http_status(exception) if is_of_httpx(exception) else None
        if status is not None and 400 <= status < 500 and status not in RETRIED_STATUS:
            return f"HTTP {status} is answered again; `retry: {{only_on: [{status}]}}` retries it"
        return None

    def permanent(self, exception: BaseException) -> bool:
        """Return True if no other attempt can succeed."""
        return not self.retryable(exception)

    def error_type(self, exception: BaseException) -> str:
        """Return the `error_type` of the failure that the exception becomes."""
        if isinstance(exception, TaskerError):
            return exception.error_type
        if isinstance(exception, builtins.TimeoutError):
            return "timeout"
        network = "network_error" if isinstance(exception, builtins.ConnectionError) else None
        return network or http_problem(exception) or "handler_error"

    def classify(self, exception: BaseException) -> dict[str, bool | str]:
        """Return the complete classification: `retryable`, `permanent`, `error_type`, `error_class`."""
        retryable = self.retryable(exception)
        return {
            "retryable": retryable,
            "permanent": not retryable,
            "error_type": self.error_type(exception),
            "error_class": type(exception).__name__,
        }


RETRIED_STATUS = frozenset({408, 425, 429})
"""Statuses below 500 after which a later request may succeed."""


def is_of_httpx(exception: BaseException) -> bool:
    """Return whether the exception is one of httpx, without loading it."""
    return any(cls.__module__.partition(".")[0] == "httpx" for cls in type(exception).__mro__)


def http_status(exception: BaseException) -> int | None:
    """Return the HTTP status that an exception of an HTTP library carries, or None."""
    candidates = (
        _attribute(_attribute(exception, "response"), "status_code"),
        *(_attribute(exception, name) for name in ("status_code", "status", "code")),
    )
    found = (value for value in candidates if type(value) is int and 100 <= value < 600)
    return next(found, None)


def sqlstate(exception: BaseException) -> str | None:
    """Return the SQLSTATE that an exception of a database driver carries, or None."""
    for source in (exception, _attribute(exception, "orig")):
        for name in ("sqlstate", "pgcode"):
            value = _attribute(source, name)
            if isinstance(value, str) and len(value) == 5:
                return value
    return None


def class_names(exception: BaseException) -> tuple[str, ...]:
    """Return the names of the exception's class and its base classes, with and without their modules."""
    classes = [cls for cls in type(exception).__mro__ if cls not in (object, BaseException, Exception)]
    names = [name for cls in classes for name in (cls.__name__, f"{cls.__module__}.{cls.__qualname__}")]
    return tuple(dict.fromkeys(names))


def _attribute(source: object, name: str) -> object:
    try:
        return getattr(source, name, None)
    except Exception:  # httpx raises where there is no request; other libraries may raise anything
        return None


def http_problem(exception: BaseException) -> str | None:
    """Return the `error_type` of an httpx exception, or None for any other exception, for which httpx is not loaded.

    Covers timeouts, connections that failed or broke, and invalid URLs.
    """
    if not is_of_httpx(exception):
        return None
    httpx: Any = sys.modules["httpx"]
    if isinstance(exception, (httpx.InvalidURL, httpx.UnsupportedProtocol, httpx.LocalProtocolError)):
        return MALFORMED
    if isinstance(exception, httpx.TimeoutException):
        return "timeout"
    return "network_error" if isinstance(exception, httpx.TransportError) else None


_default = ErrorClassifier()


def get_classifier() -> ErrorClassifier:
    """Return the classifier with the default rules."""
    return _default


def is_retryable(exception: BaseException) -> bool:
    """Return True if another attempt may succeed, by the default rules."""
    return _default.retryable(exception)


def is_permanent(exception: BaseException) -> bool:
    """Return True if no other attempt can succeed, by the default rules."""
    return _default.permanent(exception)
