"""A route of ours: asks the gate before the body is read."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.routing import APIRoute

from tasker.api.permissions import REQUIRED, Permission
from tasker.api.program import Program

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class GuardedRoute(APIRoute):
    """Lets a request through to its function when the gate does."""

    def get_route_handler(self) -> Handler:
        """The function behind the gate."""
        handle = super().get_route_handler()
        name = (self.openapi_extra or {}).get(REQUIRED)
        if name is None:
            return handle
        permission = Permission(name)

        async def guarded(request: Request) -> Response:
            request.state.caller = await request.app.state.gate(request, permission)
            return await handle(request)

        return guarded


def router(tag: str) -> APIRouter:
    """For the routes of one subject."""
    return APIRouter(route_class=GuardedRoute, tags=[tag])


def program_of(request: Request) -> Program:
    """The services that answer this request."""
    program: Program = request.app.state.program
    return program
