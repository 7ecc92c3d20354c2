"""A route of a plugin."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response

from tasker.api.routes.route import GuardedRoute


class PluginRoute(GuardedRoute):
    """A route of a plugin: `sys.exit` in it ends the request, not the server."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """The function behind the gate."""
        handle = super().get_route_handler()

        async def kept(request: Request) -> Response:
            try:
                return await handle(request)
            except SystemExit as error:
                raise RuntimeError(f"a route of a plugin wants to end the process: {error!r}") from error

        return kept


def plugin_router(prefix: str = "", *, tag: str | None = None) -> APIRouter:
    """A router for `tasker_routers`. `prefix` starts with a slash; without one it is `/plugins/NAME`."""
    return APIRouter(prefix=prefix, route_class=PluginRoute, tags=[tag] if tag else None)
