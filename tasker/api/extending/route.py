"""Routes of plugins."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from fastapi import APIRouter, Request, Response

from tasker.api.routes.route import GuardedRoute


class PluginRoute(GuardedRoute):
    """Route of a plugin; `sys.exit` in it ends the request, not the server."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the route's function behind the gate."""
        handle = super().get_route_handler()

        async def kept(request: Request) -> Response:
            try:
                return await handle(request)
            except SystemExit as error:
                raise RuntimeError(f"a route of a plugin wants to end the process: {error!r}") from error

        return kept


def plugin_router(prefix: str = "", *, tag: str | None = None) -> APIRouter:
    """Return a router for `tasker_routers`.

    `prefix` starts with a slash; without one the paths begin with `/plugins/NAME`.
    """
    return APIRouter(prefix=prefix, route_class=PluginRoute, tags=[tag] if tag else None)
