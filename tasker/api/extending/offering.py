"""Selection of the plugin routers that a server offers."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from typing import Any

from fastapi import APIRouter
from fastapi.openapi.utils import get_openapi
from fastapi.routing import iter_route_contexts

from tasker.api.extending.route import PluginRoute
from tasker.api.permissions import REQUIRED
from tasker.contracts.dataclasses import dataclass
from tasker.plugins.offers import routers_of
from tasker.plugins.process import PluginHost

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
    found: list[OfferedRouters] = []
    for plugin, router in routers_of(plugins):
        try:
            found.append(_offered(plugin, router, owners))
        except _Refused as error:
            shown = getattr(router, "prefix", None) or repr(router)
            _log.error("plugin_router_refused plugin=%s router=%s reason=%s", plugin, shown, error)
    return found


def _offered(plugin: str, router: Any, owners: dict[str, str]) -> OfferedRouters:
    if not isinstance(router, APIRouter):
        raise _Refused("expected a fastapi.APIRouter: create it with tasker.api.extending.plugin_router")
    offered = OfferedRouters("" if router.prefix else f"{BELOW}/{plugin}", router)
    head = _head(router.prefix)
    if router.prefix and owners.setdefault(head, plugin) != plugin:
        raise _Refused(f"/{head} is taken by {owners[head]}: leave the prefix out, or choose another one")
    for problem in _problems(router):
        raise _Refused(problem)
    for each in iter_route_contexts(router.routes):
        if isinstance(each.original_route, PluginRoute):
            each.original_route.offered_at = offered.prefix + (each.path or "")
    return offered


def _problems(router: APIRouter) -> Iterator[str]:
    if "{" in _head(router.prefix):
        yield "its prefix begins with a parameter: expected a fixed first segment"
    for each in iter_route_contexts(router.routes):
        if not isinstance(each.original_route, PluginRoute):
            yield f"{each.path} is no route of tasker.api.extending.plugin_router, so it has no permission check"
        elif REQUIRED not in (each.openapi_extra or {}):
            yield f"{each.path} names no permission: declare it with **needs(Permission...)"
    try:
        get_openapi(title="", version="", routes=router.routes)
    except Exception as error:  # schemas of a plugin may raise any error when they are described
        yield f"it has no OpenAPI description: {error!r}"


def _head(path: str) -> str:
    return path.removeprefix("/").partition("/")[0]
