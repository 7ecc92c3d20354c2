"""Requests of operators: each is kept with who asked for it, before anything is done."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import orjson
from fastapi import Request, Response
from fastapi.exceptions import RequestValidationError

from tasker.api.failures import status_of
from tasker.api.permissions import caller_of
from tasker.api.program import program_of
from tasker.errors import TaskerError
from tasker.services.by_hand import kept
from tasker.services.server.operator_log import OperatorAction


async def recorded(request: Request, path: str, handle: Callable[[Request], Awaitable[Response]]) -> Response:
    """The answer of `handle`; `path` is that of the route. Where nothing can be kept nothing is done."""
    log = program_of(request).operator_log
    action = await log.asked(_action(request, path))
    try:
        with kept():
            answer = await handle(request)
    except (TaskerError, RequestValidationError) as error:
        await log.answered(action, status_of(request, error))
        raise
    await log.answered(action, answer.status_code)
    return answer


async def only_tells(request: Request, field: str) -> bool:
    """Whether this field of the body is true; what is no JSON is refused later."""
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
