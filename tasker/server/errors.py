"""Errors as HTTP answers.

Texts of the database and of a broker stay here, in the log: a stranger learns which of them is at fault.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any, NamedTuple

import orjson
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Scope

from tasker.errors import (
    ApprovalDecided,
    ApprovalNotFound,
    CircuitBreakerOpen,
    ConnectionLost,
    DatabaseBreakerOpen,
    DatabaseError,
    DatabaseUnavailable,
    DeadLetterNotFound,
    DuplicateTask,
    HookNotFound,
    IdempotencyKeyReused,
    InputInvalid,
    LockTimeout,
    MessagingError,
    NotAuthenticated,
    NotPermitted,
    NotStorable,
    Overloaded,
    PlanUnreadable,
    PoolExhausted,
    QuotaExceeded,
    RegistryChanged,
    ScheduleNotFound,
    SchemaOutdated,
    StatementTimeout,
    StepNotFound,
    TaskerError,
    TaskNotFound,
    TemplateError,
    TemplateNotFound,
    TooManyConnections,
    TooManyRequests,
)
from tasker.errors.remedies import http_form
from tasker.resilience.outage import belongs_to_outage
from tasker.server.auth.caller import RefusedCallers
from tasker.server.json_request import is_json, json_pointer

MEDIA_TYPE = "application/problem+json"
PART = re.compile(r"\[(\d+)\]|\['((?:[^'\\]|\\.)*)'\]|\.([^.\[]+)")
_log = logging.getLogger("tasker.api")


class Kind(NamedTuple):
    """Answer to a class of errors; `public` replaces a message that could quote the database."""

    status: int
    code: str
    public: str | None = None


AWAY = "the database is unreachable"
LOST = "the connection to the database was lost; it is unknown whether the change was made"
BUSY = "the database is too busy; nothing was changed"
BROKER = "the messaging provider failed"
KINDS: Mapping[type[TaskerError], Kind] = {
    NotAuthenticated: Kind(401, "UNAUTHORIZED"),
    NotPermitted: Kind(403, "FORBIDDEN"),
    TooManyRequests: Kind(429, "RATE_LIMITED"),
    TaskNotFound: Kind(404, "NOT_FOUND"),
    StepNotFound: Kind(404, "NOT_FOUND"),
    DeadLetterNotFound: Kind(404, "NOT_FOUND"),
    HookNotFound: Kind(404, "NOT_FOUND"),
    ScheduleNotFound: Kind(404, "NOT_FOUND"),
    ApprovalNotFound: Kind(404, "NOT_FOUND"),
    TemplateNotFound: Kind(404, "NOT_FOUND"),
    DuplicateTask: Kind(409, "CONFLICT"),
    RegistryChanged: Kind(409, "CONFLICT"),
    ApprovalDecided: Kind(409, "CONFLICT"),
    InputInvalid: Kind(422, "BAD_REQUEST"),
    NotStorable: Kind(422, "BAD_REQUEST"),
    TemplateError: Kind(422, "BAD_REQUEST"),
    QuotaExceeded: Kind(429, "QUOTA_EXCEEDED"),
    Overloaded: Kind(503, "BACKPRESSURE"),
    PlanUnreadable: Kind(503, "SERVICE_UNAVAILABLE"),
    DatabaseBreakerOpen: Kind(503, "CIRCUIT_BREAKER_OPEN", AWAY),
    CircuitBreakerOpen: Kind(503, "CIRCUIT_BREAKER_OPEN", BROKER),
    ConnectionLost: Kind(503, "SERVICE_UNAVAILABLE", LOST),
    DatabaseUnavailable: Kind(503, "SERVICE_UNAVAILABLE", AWAY),
    TooManyConnections: Kind(503, "SERVICE_UNAVAILABLE", BUSY),
    PoolExhausted: Kind(503, "SERVICE_UNAVAILABLE", BUSY),
    StatementTimeout: Kind(503, "SERVICE_UNAVAILABLE", BUSY),
    LockTimeout: Kind(503, "SERVICE_UNAVAILABLE", BUSY),
    SchemaOutdated: Kind(503, "SERVICE_UNAVAILABLE", "the database schema has a different version"),
    DatabaseError: Kind(500, "DATABASE_ERROR", "the database refused the request"),
    MessagingError: Kind(503, "SERVICE_UNAVAILABLE", BROKER),
    TaskerError: Kind(400, "BAD_REQUEST"),
}
CODES = {
    401: "UNAUTHORIZED",
    403: "FORBIDDEN",
    404: "NOT_FOUND",
    408: "TIMEOUT",
    500: "INTERNAL",
    503: "SERVICE_UNAVAILABLE",
    504: "TIMEOUT",
}
"""Codes of answers without an error of Tasker behind them; the rest of 4xx is `BAD_REQUEST`."""


def kind_of(error: TaskerError) -> Kind:
    """Return the entry of the nearest class."""
    return next(KINDS[cls] for cls in type(error).__mro__ if cls in KINDS)


def problem(
    status: int,
    message: str,
    *,
    kind: str | None = None,
    code: str | None = None,
    retry_after: float | None = None,
    **members: Any,
) -> dict[str, Any]:
    """Return an error as plain data. `kind` is the stable name of the problem, `code` the published name of its
    group."""
    code = code or CODES.get(status, "BAD_REQUEST")
    kind = kind or code.lower()
    error: dict[str, Any] = {"code": code, "message": message}
    if retry_after is not None:
        error["retry_after_seconds"] = max(1, round(retry_after))
    return {
        "type": f"urn:tasker:problem:{kind}",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": message,
        "code": kind,
        **{name: value for name, value in members.items() if value is not None},
        "error": error,
    }


def problem_of(error: TaskerError, *, within: bool = False, for_page: bool = True) -> dict[str, Any]:
    """Return an error of a service as plain data. `within` means that the body of the request named the missing
    object. Hints name commands on a page, whose reader may have them, and requests in an answer of the API."""
    kind = kind_of(error)
    if within and kind.status == 404:
        kind = Kind(400, "BAD_REQUEST")
    return problem(
        kind.status,
        kind.public or error.message,
        kind=error.error_type,
        code=kind.code,
        retry_after=error.retry_after if kind.status in (429, 503) else None,
        hint=None if kind.public else error.hint if for_page else http_form(error.hint),
        errors=problems_in(error, "/context" if within else ""),
    )


Answering = Callable[[Mapping[str, Any], Scope], Response]
"""Makes the answer to a request of a problem, where no route does."""


def answer(document: Mapping[str, Any], scope: Scope, headers: Mapping[str, str] | None = None) -> Response:
    """Return the problem as the answer to the request of this scope."""
    sent = dict(headers or {})
    if seconds := document["error"].get("retry_after_seconds"):
        sent["Retry-After"] = str(seconds)
    if document["status"] == 401:
        sent["WWW-Authenticate"] = "Bearer"
    scope["state"]["problem"] = document["error"]["code"]
    body = {**document, "instance": scope["path"], "request_id": scope["state"]["request_id"]}
    return Response(orjson.dumps(body, default=str), document["status"], sent, MEDIA_TYPE)


def log_error(error: TaskerError, scope: Scope) -> None:
    """Log the details that the client does not get. Errors of an outage are logged at DEBUG: the outage is logged
    once."""
    status = kind_of(error).status
    if isinstance(error, (NotAuthenticated, NotPermitted)):
        _refused(error, scope)
    if status >= 500 and not isinstance(error, Overloaded):
        level = logging.DEBUG if belongs_to_outage(error) else logging.ERROR
        _log.log(level, "request=%s %s: %s", scope["state"]["request_id"], error.error_type, error)


def _refused(error: TaskerError, scope: Scope) -> None:
    state, client = scope["state"], scope.get("client")
    name = state["caller"].name if "caller" in state else None
    refused: RefusedCallers = scope["app"].state.refused
    refused.note(error, request=state["request_id"], address=client[0] if client else "unknown", caller=name)


def problems_in(error: TaskerError, base: str) -> Sequence[Mapping[str, Any]] | None:
    """Return the invalid values with JSON pointers; `base` is the pointer of the value in the body of the request."""
    if isinstance(error, (InputInvalid, IdempotencyKeyReused)):
        return [
            {"pointer": f"{base}{pointer(violation.path)}", "message": violation.message}
            for violation in error.problems
        ]
    if isinstance(error, NotStorable):
        return [{"pointer": f"{base}{pointer(error.path)}", "message": error.reason}]
    if isinstance(error, TemplateError):
        return [diagnostic.to_dict() for diagnostic in error.diagnostics if hasattr(diagnostic, "to_dict")] or None
    return None


def pointer(path: str) -> str:
    """Return a path (`$.rows[3]['unit price']`) as a JSON pointer (`/rows/3/unit price`)."""
    parts = (re.sub(r"\\(.)", r"\1", "".join(groups)) for groups in PART.findall(path.removeprefix("$")))
    return "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in parts)


FAILED = "internal error; the server log contains the request id"


def answer_failures(app: FastAPI) -> None:
    """Register handlers that answer errors as problems."""
    app.add_exception_handler(TaskerError, _of_a_service)
    app.add_exception_handler(RequestValidationError, _of_a_malformed_request)
    app.add_exception_handler(HTTPException, _of_the_framework)
    app.add_exception_handler(Exception, _of_ours)


async def _of_a_service(request: Request, error: Exception) -> Response:
    assert isinstance(error, TaskerError)
    log_error(error, request.scope)
    is_within = request.method == "POST" and not request.path_params
    return answer(problem_of(error, within=is_within, for_page=False), request.scope)


async def _of_a_malformed_request(request: Request, error: Exception) -> Response:
    """Answer a request that does not match its schema, without repeating any value: it may be secret."""
    assert isinstance(error, RequestValidationError)
    if _is_unannounced(request, error):
        details = problem(415, "the body is not announced as JSON", hint="send Content-Type: application/json")
        return answer(details, request.scope)
    errors = [_error_location(violation) for violation in error.errors()]
    first = errors[0]
    more = f", and {len(errors) - 1} more" if len(errors) > 1 else ""
    message = f"{first['pointer'] or 'the request'}: {first['message']}{more}"
    hint = "the interface is described at /openapi.json"
    return answer(problem(400, message, kind="malformed_request", hint=hint, errors=errors), request.scope)


def status_of(request: Request, error: TaskerError | RequestValidationError) -> int:
    if isinstance(error, TaskerError):
        return kind_of(error).status
    return 415 if _is_unannounced(request, error) else 400


def _is_unannounced(request: Request, error: RequestValidationError) -> bool:
    return bool(error.body) and not is_json(request)


def _error_location(error: Mapping[str, Any]) -> dict[str, str]:
    if error["type"] == "json_invalid":
        return {"pointer": "", "message": f"not JSON: {error['ctx']['error']} at character {error['loc'][-1]}"}
    return {"pointer": _pointer(error["loc"]), "message": error["msg"].removeprefix("Value error, ")}


def _pointer(loc: tuple[int | str, ...]) -> str:
    """Into the body; of a parameter its kind and name."""
    return json_pointer(loc[1:] if loc and loc[0] == "body" else loc)


async def _of_the_framework(request: Request, error: Exception) -> Response:
    """Answer errors of the framework: unknown path, wrong method, unreadable body."""
    assert isinstance(error, HTTPException)
    headers = {"Allow": ", ".join(methods_of(request))} if error.status_code == 405 else error.headers
    return answer(problem(error.status_code, str(error.detail)), request.scope, headers)


def methods_of(request: Request) -> list[str]:
    """Return the methods that the path of a request supports."""
    matching = (route for route in request.app.routes if route.matches(request.scope)[0] is not Match.NONE)
    methods = {method for route in matching for method in getattr(route, "methods", None) or ()}
    return sorted(methods | {"HEAD"} if "GET" in methods else methods)


async def _of_ours(request: Request, error: Exception) -> Response:
    """Answer an unexpected error; its details are written to the log only."""
    return answer(problem(500, FAILED), request.scope)
