"""Normalized outcome of a handler: its return value as a result, its exception as a failure."""

from __future__ import annotations

import inspect
import math
import traceback
from collections.abc import Mapping
from typing import Any

from tasker.errors import ErrorClassifier, TaskerError
from tasker.errors.handler import class_names, http_status, sqlstate
from tasker.handlers.claims import Failure
from tasker.handlers.classifier import installed_classifier
from tasker.handlers.results import (
    INVALID_RESULT,
    StepHandlerCallResult,
    StepHandlerResult,
    described,
    flag_of,
    mapping_of,
    printable,
    text_of,
)

CAUSE = "_cause"
TRACEBACK_LIMIT = 4000
"""Number of characters stored of a traceback; its end is kept, which names the failing line."""


def to_result(value: Any, handler: str = "the handler") -> StepHandlerResult:
    """Convert the return value of `call` to a result. `handler` is its name in messages.

    A `StepHandlerResult` is returned as it is, a `StepHandlerCallResult` is converted. Any other value becomes a
    permanent failure that states what was returned and what was expected, because another attempt would return the
    same.
    """
    if isinstance(value, StepHandlerResult):
        return value
    if isinstance(value, StepHandlerCallResult):
        return _from_call_result(value)
    if inspect.iscoroutine(value):
        value.close()
    return StepHandlerResult.failure(
        f"{handler} returned {described(value)}, expected a StepHandlerResult: {_advice(value)}",
        INVALID_RESULT,
        retryable=False,
        metadata={"returned_type": type(value).__name__},
    )


def _from_call_result(value: StepHandlerCallResult) -> StepHandlerResult:
    if value.success:
        return StepHandlerResult.success(value.result, value.metadata)
    return StepHandlerResult.failure(
        value.error_message or "the handler failed without a message", metadata=value.metadata
    )


def _advice(value: Any) -> str:
    if inspect.isawaitable(value):
        return "declare it with `async def`, so that the worker awaits it"
    if value is None:
        return "end with `return self.success({...})`"
    if isinstance(value, Mapping):
        return "write `return self.success(result)` (a function under @step_handler may return a dict)"
    return "write `return self.success({...})` or `return self.failure(...)`"


def failure_from_result(result: StepHandlerResult, handler: str | None = None) -> Failure:
    """Convert a failed result to the engine's form; `metadata["retry_after"]` (seconds) becomes the delay."""
    return Failure(
        message=result.error_message or "the handler failed without a message",
        error_type=result.error_type or "handler_error",
        retryable=result.retryable,
        error_code=result.error_code,
        retry_after=_seconds(result.metadata.get("retry_after")),
        metadata=result.metadata,
        handler=handler,
        **_facts_of(result),
    )


def _facts_of(result: StepHandlerResult) -> dict[str, Any]:
    """Return what is known of the exception behind a result, or the status in its metadata."""
    cause: Failure | None = getattr(result, CAUSE, None)
    if cause is not None:
        return {name: getattr(cause, name) for name in ("names", "http_status", "sqlstate", "why")}
    status = result.metadata.get("status_code")
    return {"http_status": status} if type(status) is int else {}


def failure_from_exception(
    exc: BaseException, classifier: ErrorClassifier | None = None, handler: str | None = None
) -> Failure:
    """Convert an exception to a failure in the engine's form.

    A `TaskerError` determines itself whether it is retryable, and keeps its code, delay, metadata and context; for any
    other exception `classifier` decides, by default the installed one. The exception's class and the end of its
    traceback are added to the metadata.
    """
    rules = classifier or installed_classifier()
    retryable = flag_of(rules.retryable(exc))
    return Failure(
        message=printable(exc) or type(exc).__name__,
        error_type=text_of(rules.error_type(exc)) or "handler_error",
        retryable=retryable,
        error_code=text_of(_own(exc, "error_code")),
        retry_after=_seconds(_own(exc, "retry_after")),
        metadata=exception_metadata(exc),
        handler=handler,
        names=class_names(exc),
        http_status=http_status(exc) or _status_in(exc),
        sqlstate=sqlstate(exc),
        why=None if retryable else rules.reason(exc),
    )


def result_from_exception(exc: BaseException, classifier: ErrorClassifier | None = None) -> StepHandlerResult:
    """Convert an exception to a failed result, as function handlers return it."""
    failure = failure_from_exception(exc, classifier)
    metadata = dict(failure.metadata)
    if failure.retry_after is not None:
        metadata["retry_after"] = failure.retry_after
    result = StepHandlerResult.failure(
        failure.message, failure.error_type, failure.retryable, metadata, failure.error_code
    )
    object.__setattr__(result, CAUSE, failure)  # beside the fields, as a cached property: not part of the result
    return result


def _status_in(exc: BaseException) -> int | None:
    status = mapping_of(_own(exc, "metadata")).get("status_code")
    return status if type(status) is int else None


def exception_metadata(exc: BaseException) -> dict[str, Any]:
    """Return the metadata stored for an exception: its own metadata and context, its class, its shortened traceback."""
    metadata = {**mapping_of(_own(exc, "context")), **mapping_of(_own(exc, "metadata"))}
    if hint := text_of(_own(exc, "hint")):
        metadata["hint"] = hint
    lines = "".join(traceback.format_exception(exc))
    return {**metadata, "exception_type": type(exc).__name__, "traceback": lines[-TRACEBACK_LIMIT:]}


def _own(exc: BaseException, field: str) -> Any:
    """Return a field of a Tasker error; None if a subclass did not call `super().__init__(...)`."""
    return getattr(exc, field, None) if isinstance(exc, TaskerError) else None


def _seconds(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    try:
        return float(value) if math.isfinite(value) and value >= 0 else None
    except OverflowError:  # an integer too large for a float
        return None
