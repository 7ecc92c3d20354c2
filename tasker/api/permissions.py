"""Permissions of routes: every route names one permission or is open to everyone.

The application's gate identifies the caller and checks the permission before the body of a request is read. Without
configured authentication the gate admits everyone, and the server listens on loopback only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Request

from tasker.contracts.rules.permissions import Permission as Permission  # re-exported for the routes
from tasker.errors import NotPermitted
from tasker.services.authentication.caller import ANYBODY, AuthenticatedCaller

REQUIRED = "x-required-permission"
"""Key of an operation's description that names its permission."""
CONFINES = "x-confines-by-namespace"
"""Key of an operation that shows and changes only data in the caller's namespaces."""

OPERATES = "x-recorded"
"""Key of an operation that is recorded in `tasker.operator_actions` with its actor."""
SEVERAL = "x-recorded-before"
"""Key of a recorded operation that uses several transactions: it is recorded before the first."""
UNLESS = "x-recorded-unless"
"""Key that names the body field with which a recorded operation is a dry run."""

Gate = Callable[[Request], Awaitable[AuthenticatedCaller]]
"""Function that returns the caller; raises `NotAuthenticated` if the credentials identify nobody."""


async def open_gate(request: Request) -> AuthenticatedCaller:
    """Admit everyone with all permissions: authentication is not configured."""
    return ANYBODY


def needs(
    permission: Permission,
    *,
    confines: bool = False,
    operates: bool = False,
    several: bool = False,
    unless: str | None = None,
) -> dict[str, Any]:
    """Return the arguments of a route's declaration that name its permission.

    A caller limited to namespaces reaches a route whose path names a task or a namespace of theirs, and any other route
    only if it `confines`: its function then restricts itself to `namespaces_of` the request. An operator action
    (`operates`) is recorded with its actor, `unless` the body field of that name is true; with `several` it is recorded
    before it is done.
    """
    given = ((CONFINES, confines), (OPERATES, operates), (SEVERAL, several))
    marks: dict[str, Any] = {mark: True for mark, set_ in given if set_}
    marks |= {UNLESS: unless} if unless else {}
    return {"openapi_extra": {REQUIRED: str(permission), **marks}}


def caller_of(request: Request) -> AuthenticatedCaller:
    """Return the caller identified by the gate."""
    caller: AuthenticatedCaller = request.state.caller
    return caller


def namespaces_of(request: Request) -> frozenset[str] | None:
    """Return the namespaces in which the caller may use the route, or None for all."""
    found: frozenset[str] | None = request.state.namespaces
    return found


def require_namespace(request: Request, namespace: str) -> None:
    """Check that the caller may use the route in this namespace. Raises `NotPermitted` otherwise."""
    where = namespaces_of(request)
    if where is not None and namespace not in where:
        raise NotPermitted(f"Missing required permission: this is not permitted in namespace {namespace}")


def known_caller(request: Request) -> str | None:
    """Return the name of an authenticated caller, or None."""
    caller = caller_of(request)
    return caller.name if caller.known else None


def actor_of(request: Request, given: str | None = None) -> str:
    """Return the actor to record: the name of an authenticated caller, otherwise the given name."""
    return known_caller(request) or given or caller_of(request).name
