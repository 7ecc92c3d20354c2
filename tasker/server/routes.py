"""Route class that checks permissions before the body is read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Coroutine
from time import perf_counter
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.dependencies.models import Dependant
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute

from tasker.errors import NotAuthenticated, NotPermitted
from tasker.operations.permissions import Permission
from tasker.server.auth.caller import AuthenticatedCaller
from tasker.server.auth.gate import (
    CONFINES,
    CONFINES_TENANTS,
    OPERATES,
    REQUIRED,
    SEVERAL,
    UNLESS,
    namespaces_of,
    require_namespace,
    tenants_of,
)
from tasker.server.envelope import RateLimit
from tasker.server.json_request import read_json
from tasker.server.operating import audit_request, is_read_only
from tasker.server.program import program_of as program_of  # re-exported for the routes
from tasker.services.fleet.metrics import AccessCounts
from tasker.services.tasks.read import not_found
from tasker.template.diagnostics import did_you_mean, listed

Handler = Callable[[Request], Coroutine[Any, Any, Response]]


class GuardedRoute(APIRoute):
    """Route that calls its function only if the gate admits the request."""

    done = 200
    """Status of a successful answer if the route does not set one."""
    offered_at = ""
    """Complete path of a route that is served under another prefix than its own."""
    knows_parameters = True
    """False if the function reads query parameters that it does not declare."""

    def get_route_handler(self) -> Handler:
        """Return the route's function behind the gate."""
        handle = super().get_route_handler()
        if self.body_field is not None:
            handle = _with_json(handle)
        declared = self.openapi_extra or {}
        if REQUIRED not in declared:
            return handle
        permission = Permission(declared[REQUIRED])
        confines, tenants = bool(declared.get(CONFINES)), bool(declared.get(CONFINES_TENANTS))
        operates, unless = bool(declared.get(OPERATES)), declared.get(UNLESS)
        done, several = self.status_code or self.done, bool(declared.get(SEVERAL))
        parameters = _query_parameters(self.dependant) if self.knows_parameters else None

        async def guarded(request: Request) -> Response:
            await admit(request, permission, confines, tenants)
            if parameters is not None:
                _refuse_unknown(request, parameters)
            if not operates or (unless and await is_read_only(request, unless)):
                return await handle(request)
            return await audit_request(request, self.offered_at or self.path, handle, done=done, several=several)

        return guarded


def _with_json(handle: Handler) -> Handler:
    async def handled(request: Request) -> Response:
        await read_json(request)
        return await handle(request)

    return handled


async def admit(request: Request, permission: Permission, confines: bool, tenants: bool) -> None:
    """Authenticate the caller and check the permission, and record the outcome.

    Raises `NotAuthenticated`, `NotPermitted`, and `TaskNotFound` for a task outside of the caller's namespaces or
    tenants.
    """
    counts: AccessCounts = request.app.state.access
    began = perf_counter()
    try:
        request.state.caller = caller = await _caller(request)
        counts.known(caller.method, (perf_counter() - began) * 1000)
        await _require(request, caller, permission, confines, tenants)
    except NotAuthenticated as error:
        counts.refused(error.reason, (perf_counter() - began) * 1000)
        raise
    except NotPermitted:
        counts.denials[permission] += 1
        raise


def _query_parameters(dependant: Dependant) -> list[str]:
    """Return the names of the query parameters declared by a route and its dependencies."""
    below = [name for dependency in dependant.dependencies for name in _query_parameters(dependency)]
    return [parameter.alias for parameter in dependant.query_params] + below


def _refuse_unknown(request: Request, parameters: Collection[str]) -> None:
    """Refuse undeclared query parameters: with an ignored filter the answer would not match the request.

    Raises `RequestValidationError`.
    """
    unknown = [name for name in request.query_params if name not in parameters]
    if unknown:
        raise RequestValidationError([_unknown(name, parameters) for name in unknown])


def _unknown(name: str, parameters: Collection[str]) -> dict[str, Any]:
    choices = f"expected one of {listed(parameters)}" if parameters else "this path takes none"
    expected = did_you_mean(name, parameters) or choices
    return {"type": "extra_forbidden", "loc": ("query", name), "msg": f"unknown parameter; {expected}"}


async def _require(
    request: Request, caller: AuthenticatedCaller, permission: Permission, confines: bool, tenants: bool
) -> None:
    caller.require(permission)
    request.state.namespaces = where = caller.namespaces(permission)
    if where is None and caller.tenants is None:
        return
    named = await _named_by_its_path(request)
    if where is not None and not named and not confines:
        raise NotPermitted(f"Missing required permission: {permission} in every namespace")
    if caller.tenants is not None and _task_named(request) is None and not tenants:
        raise NotPermitted(f"Missing required permission: {permission} for every tenant")


async def _caller(request: Request) -> AuthenticatedCaller:
    """Return the caller, within the rate limit; unauthenticated callers are counted by their address."""
    limit: RateLimit | None = request.app.state.rate_limit
    address = request.client.host if request.client else "unknown"
    try:
        caller: AuthenticatedCaller = await request.app.state.gate(request)
    except NotAuthenticated:
        if limit:
            limit.spend(f"address {address}")
        raise
    if limit:
        limit.spend(f"{caller.method} {caller.name}" if caller.known else f"address {address}")
    return caller


async def _named_by_its_path(request: Request) -> bool:
    """Return whether the path names a task or a namespace.

    Raises `TaskNotFound` or `NotPermitted` if it is not one of the caller's.
    """
    named, task = request.path_params, _task_named(request)
    if task is not None:
        await require_task(request, task)
    if "namespace" in named:
        require_namespace(request, named["namespace"])
    return task is not None or "namespace" in named


def _task_named(request: Request) -> str | None:
    return request.path_params.get("uuid") or request.path_params.get("task_uuid")


async def require_task(request: Request, task_uuid: str) -> None:
    """Check that the task is in the caller's namespaces and of their tenants. Raises `TaskNotFound` otherwise."""
    where, tenants = namespaces_of(request), tenants_of(request)
    if where is None and tenants is None:
        return
    namespace, tenant = await program_of(request).views.owner(task_uuid)
    if (where is not None and namespace not in where) or (tenants is not None and tenant not in tenants):
        raise not_found(task_uuid)


def location_of(request: Request, task_uuid: str) -> dict[str, str]:
    """Return the `Location` header of a task, including the path of a proxy."""
    return {"Location": f"{request.scope.get('root_path', '')}/v1/tasks/{task_uuid}"}


def router(tag: str) -> APIRouter:
    """Return a router for the routes of one subject."""
    return APIRouter(route_class=GuardedRoute, tags=[tag])
