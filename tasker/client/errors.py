"""Mapping of a server's problem details to the exceptions of `tasker.App`, by their stable code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any

from tasker import errors
from tasker.engine.expansion.outcomes import OutcomeError
from tasker.errors import (
    IdempotencyKeyReused,
    InputInvalid,
    NotAuthenticated,
    NotPermitted,
    NotStorable,
    NotTasker,
    RequestTimeout,
    ServerError,
    ServerUnreachable,
    TaskerError,
    TemplateError,
    TooManyRequests,
    UsageError,
)
from tasker.errors.handler import RetryableError

Problem = Mapping[str, Any]
CREDENTIALS = "set a token or API key: tasker profile add NAME --url URL --token-file FILE"
HINTS = {
    "not_found": "the server has no such path: it may have another release (tasker profile check) or lack a plugin"
}
OF_HANDLERS = (errors.PermanentError, RetryableError)
"""Errors raised by handlers; a server never returns them."""


def _engine_errors(root: type[TaskerError]) -> Iterator[type[TaskerError]]:
    for subclass in root.__subclasses__():
        if subclass.__module__.startswith("tasker.errors.") and not issubclass(subclass, OF_HANDLERS):
            yield subclass
            yield from _engine_errors(subclass)


BY_CODE: dict[str, type[TaskerError]] = {
    "not_storable": NotStorable,
    "result_too_large": NotStorable,
    OutcomeError.error_type: OutcomeError,
    "malformed_request": UsageError,
    "body_too_large": UsageError,
    "too_many_streams": TooManyRequests,
    "not_ready": ServerUnreachable,
}
for _each in _engine_errors(TaskerError):
    BY_CODE.setdefault(_each.error_type, _each)  # a parent precedes subclasses that inherit its code

BY_STATUS: dict[int, type[TaskerError]] = {
    401: NotAuthenticated,
    403: NotPermitted,
    408: RequestTimeout,
    429: TooManyRequests,
}


def error_of(status: int, problem: Problem, retry_after: float | None) -> TaskerError:
    """Return the exception for a problem reported by a Tasker server. `retry_after` is in seconds."""
    error_type = BY_CODE.get(
        str(problem.get("code")), BY_STATUS.get(status) or (ServerError if status >= 500 else UsageError)
    )
    message = str(problem.get("detail") or problem.get("title") or f"the server answered {status}")
    hint = problem.get("hint") or (
        CREDENTIALS if error_type is NotAuthenticated else HINTS.get(str(problem.get("code")))
    )
    fields: dict[str, Any] = {"hint": hint, "retry_after": retry_after}
    make = _SPECIAL.get(error_type)
    made = make(message, problem, fields) if make else error_type(message, **fields)
    if request_id := problem.get("request_id"):
        made.metadata["request_id"] = request_id
    return made


def _input_invalid(message: str, problem: Problem, fields: dict[str, Any]) -> TaskerError:
    return InputInvalid(message, problems=_places(problem), **fields)


def _key_reused(message: str, problem: Problem, fields: dict[str, Any]) -> TaskerError:
    return IdempotencyKeyReused(message, problems=_places(problem), **fields)


def _places(problem: Problem) -> list[SimpleNamespace]:
    return [SimpleNamespace(path=error["pointer"], message=error["message"]) for error in problem.get("errors") or ()]


def _not_storable(message: str, problem: Problem, fields: dict[str, Any]) -> TaskerError:
    place, _, reason = message.partition(": ")
    return NotStorable.at(place, reason, too_large=problem.get("code") == "result_too_large", hint=fields["hint"])


def _template_error(message: str, problem: Problem, fields: dict[str, Any]) -> TaskerError:
    return TemplateError(message, diagnostics=problem.get("errors") or (), **fields)


_SPECIAL: dict[type[TaskerError], Callable[[str, Problem, dict[str, Any]], TaskerError]] = {
    IdempotencyKeyReused: _key_reused,
    InputInvalid: _input_invalid,
    NotStorable: _not_storable,
    TemplateError: _template_error,
}

AWAY = "a proxy responds, but the server behind it does not: check that it runs"
STRANGER = "check that the URL is that of a Tasker server, including the path prefix of a proxy"


def stranger(url: str, status: int, content_type: str, location: str | None, retry_after: float | None) -> TaskerError:
    """Return the error for a response that does not come from Tasker: from another service, or from a proxy."""
    if location is not None and 300 <= status < 400:
        return NotTasker(f"{url} redirects to {location}", hint="use that URL, if it is your Tasker server")
    what = (
        f"{url} answered {status} with {content_type.partition(';')[0] or 'nothing'}, which is not a response of Tasker"
    )
    if status in (502, 503, 504):
        return ServerUnreachable(what, hint=AWAY, retry_after=retry_after)
    if status in BY_STATUS:
        hint = CREDENTIALS if status == 401 else "a proxy refuses the request: ask who runs it"
        return BY_STATUS[status](what, hint=hint, retry_after=retry_after)
    return NotTasker(what, hint=STRANGER)
