"""Audit log of operator actions: each is recorded with its actor in the transaction of the change."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import orjson
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from tasker.errors import TaskerError
from tasker.server.auth.gate import caller_of
from tasker.server.errors import status_of
from tasker.server.program import program_of
from tasker.services.audit import OperatorAction, OperatorAudit


async def audit_request(
    request: Request, path: str, handle: Callable[[Request], Awaitable[Response]], *, done: int, several: bool
) -> Response:
    """Call `handle` and record the operator action.

    `path` is the path of the route and `done` the status of a successful answer. An action that spans several
    transactions (`several`) is recorded before the first. If the record cannot be written, nothing is changed.
    """
    asking = OperatorAudit(program_of(request).operator_log, _action(request, path), done)

    async def use() -> Response:
        if several:
            await asking.begin()
        return await handle(request)

    return await asking.record(use, lambda answer: answer.status_code, lambda error: _status(request, error))


def _status(request: Request, error: Exception) -> int:
    if isinstance(error, (TaskerError, RequestValidationError)):
        return status_of(request, error)
    return error.status_code if isinstance(error, HTTPException) else 500


async def is_read_only(request: Request, field: str) -> bool:
    """Return whether this field of the body is true; a body that is not JSON is refused later."""
    try:
        body = orjson.loads(await request.body())
    except orjson.JSONDecodeError:
        return False
    return isinstance(body, dict) and body.get(field) is True


def _action(request: Request, path: str) -> OperatorAction:
    caller, client = caller_of(request), request.client
    return OperatorAction(
        actor=caller.name,
        proof=caller.method,
        endpoint=f"{request.method} {path}",
        path=request.url.path,
        request_id=request.scope["state"]["request_id"],
        address=client.host if client else None,
    )
