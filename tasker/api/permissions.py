"""What a caller must be allowed to do. Every route names one permission, or is open to everybody.

Who calls and what they may is asked of the application's gate before the body of a request is read. Without
configured authentication the gate lets everybody through, and the server listens on loopback only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Request

from tasker.contracts.rules.permissions import Permission as Permission  # offered to the routes
from tasker.errors import NotPermitted
from tasker.services.authentication.caller import ANYBODY, AuthenticatedCaller

REQUIRED = "x-required-permission"
"""The key of an operation's description that names its permission."""
CONFINES = "x-confines-by-namespace"
"""The key of an operation that shows and changes only what is in the caller's namespaces."""

OPERATES = "x-recorded"
"""The key of an operation that is kept in `tasker.operator_actions` with who asked for it."""
SEVERAL = "x-recorded-before"
"""The key of such an operation that does things in several transactions: it is kept before the first."""
UNLESS = "x-recorded-unless"
"""The key that names the field of its body with which such an operation only tells what it would do."""

Gate = Callable[[Request], Awaitable[AuthenticatedCaller]]
"""Answers who calls; raises `NotAuthenticated` when nobody is known by what they show."""


async def open_gate(request: Request) -> AuthenticatedCaller:
    """Without configured authentication everybody may do everything."""
    return ANYBODY


def needs(
    permission: Permission,
    *,
    confines: bool = False,
    operates: bool = False,
    several: bool = False,
    unless: str | None = None,
) -> dict[str, Any]:
    """The part of a route's declaration that says which permission it needs.

    A caller who is confined to namespaces reaches a route whose path names a task or a namespace of theirs; another
    one only where it `confines`: its function keeps to `namespaces_of` the request. What `operates` by hand is kept
    with who asked for it, `unless` a field of that name in the body is true; with `several` before it is done.
    """
    given = ((CONFINES, confines), (OPERATES, operates), (SEVERAL, several))
    marks: dict[str, Any] = {mark: True for mark, set_ in given if set_}
    marks |= {UNLESS: unless} if unless else {}
    return {"openapi_extra": {REQUIRED: str(permission), **marks}}


def caller_of(request: Request) -> AuthenticatedCaller:
    """Who the gate said is calling."""
    caller: AuthenticatedCaller = request.state.caller
    return caller


def namespaces_of(request: Request) -> frozenset[str] | None:
    """Where the caller may do what the route does; None: everywhere."""
    found: frozenset[str] | None = request.state.namespaces
    return found


def require_namespace(request: Request, namespace: str) -> None:
    """Raises `NotPermitted` where the caller may not do this in that namespace."""
    where = namespaces_of(request)
    if where is not None and namespace not in where:
        raise NotPermitted(f"Missing required permission: this is not permitted in namespace {namespace}")


def known_caller(request: Request) -> str | None:
    """The caller's name, where they have shown who they are."""
    caller = caller_of(request)
    return caller.name if caller.known else None


def actor_of(request: Request, given: str | None = None) -> str:
    """The name that is kept with what the caller does: their own where it is known, else the one that they give."""
    return known_caller(request) or given or caller_of(request).name
