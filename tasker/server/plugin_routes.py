"""Routes that plugins add, checked for their permissions.

A plugin creates its routers with `plugin_router` and gives each route `needs(Permission...)`. The gate then checks
callers before the body is read, as for the server's own routes. `program_of(request)` returns the services.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Coroutine, Iterator
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.routing import iter_route_contexts

from tasker.dataclasses import dataclass
from tasker.operations.permissions import Permission
from tasker.plugins.contributions import routers_of
from tasker.plugins.host import PluginHost
from tasker.server.auth.gate import REQUIRED, actor_of, caller_of, namespaces_of, needs, require_namespace
from tasker.server.program import program_of
from tasker.server.routes import GuardedRoute

__all__ = [
    "Permission",
    "actor_of",
    "caller_of",
    "namespaces_of",
    "needs",
    "plugin_router",
    "program_of",
    "require_namespace",
]


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


BELOW = "/plugins"
_log = logging.getLogger("tasker.plugins")


class _Refused(Exception):
    """Error raised for a router that cannot be offered; its text is the reason."""


@dataclass(frozen=True, slots=True)
class OfferedRouters:
    """Router with the prefix of its paths."""

    prefix: str
    router: APIRouter


def offered_routers(plugins: PluginHost, taken: Collection[str]) -> list[OfferedRouters]:
    """Return the routers of plugins; refused ones are logged. `taken` are the server's own paths."""
    owners = {_head(path): "the server" for path in (*taken, BELOW)}
    offered: list[OfferedRouters] = []
    for plugin, router in routers_of(plugins):
        try:
            offered.append(_offered(plugin, router, owners))
        except _Refused as error:
            label = getattr(router, "prefix", None) or repr(router)
            _log.error("plugin_router_refused plugin=%s router=%s reason=%s", plugin, label, error)
    return offered


def _offered(plugin: str, router: Any, owners: dict[str, str]) -> OfferedRouters:
    if not isinstance(router, APIRouter):
        raise _Refused("expected a fastapi.APIRouter: create it with tasker.server.plugin_routes.plugin_router")
    offered = OfferedRouters("" if router.prefix else f"{BELOW}/{plugin}", router)
    head = _head(router.prefix)
    if router.prefix and owners.setdefault(head, plugin) != plugin:
        raise _Refused(f"/{head} is taken by {owners[head]}: leave the prefix out, or choose another one")
    for problem in _problems(router):
        raise _Refused(problem)
    for context in iter_route_contexts(router.routes):
        if isinstance(context.original_route, PluginRoute):
            context.original_route.offered_at = offered.prefix + (context.path or "")
    return offered


def _problems(router: APIRouter) -> Iterator[str]:
    if "{" in _head(router.prefix):
        yield "its prefix begins with a parameter: expected a fixed first segment"
    for context in iter_route_contexts(router.routes):
        if not isinstance(context.original_route, PluginRoute):
            yield f"{context.path} is no route of a `plugin_router`, so it has no permission check"
        elif REQUIRED not in (context.openapi_extra or {}):
            yield f"{context.path} names no permission: declare it with **needs(Permission...)"
    try:
        get_openapi(title="", version="", routes=router.routes)
    except Exception as error:  # schemas of a plugin may raise any error when they are described
        yield f"it has no OpenAPI description: {error!r}"


def _head(path: str) -> str:
    return path.removeprefix("/").partition("/")[0]
