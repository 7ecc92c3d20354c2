"""Answers to the errors that routes raise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Match

from tasker.api.envelope import FAILED
from tasker.api.json_request import is_json, json_pointer
from tasker.api.problems import answer, kind_of, problem, problem_of, tell
from tasker.errors import TaskerError


def answer_failures(app: FastAPI) -> None:
    """Register handlers that answer errors as problems."""
    app.add_exception_handler(TaskerError, _of_a_service)
    app.add_exception_handler(RequestValidationError, _of_a_malformed_request)
    app.add_exception_handler(HTTPException, _of_the_framework)
    app.add_exception_handler(Exception, _of_ours)


async def _of_a_service(request: Request, error: Exception) -> Response:
    assert isinstance(error, TaskerError)
    tell(error, request.scope)
    is_within = request.method == "POST" and not request.path_params
    return answer(problem_of(error, within=is_within, for_page=False), request.scope)


async def _of_a_malformed_request(request: Request, error: Exception) -> Response:
    """Answer a request that does not match its schema, without repeating any value: it may be secret."""
    assert isinstance(error, RequestValidationError)
    if _is_unannounced(request, error):
        found = problem(415, "the body is not announced as JSON", hint="send Content-Type: application/json")
        return answer(found, request.scope)
    errors = [_place(each) for each in error.errors()]
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


def _place(found: Mapping[str, Any]) -> dict[str, str]:
    if found["type"] == "json_invalid":
        return {"pointer": "", "message": f"not JSON: {found['ctx']['error']} at character {found['loc'][-1]}"}
    return {"pointer": _pointer(found["loc"]), "message": found["msg"].removeprefix("Value error, ")}


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
