"""Check of a route's permission before the request is read.

The application's gate identifies the caller and checks the permission before the body of a request is read. Without
configured authentication the gate admits everyone, and the server listens on loopback only.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import Request

from tasker.operations.permissions import Permission as Permission
from tasker.server.auth.authenticator import Authenticator
from tasker.server.auth.caller import ANYBODY, AuthenticatedCaller
from tasker.services.viewer import require_one_of

_log = logging.getLogger("tasker.api")


class ClosedGate:
    """Gate that admits callers whom the authenticator recognizes."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator, self._header = authenticator, authenticator.settings.api_key_header

    def change(self, authenticator: Authenticator) -> None:
        """Replace the authenticator; the name of the API key header stays the same."""
        self._authenticator = authenticator

    async def __call__(self, request: Request) -> AuthenticatedCaller:
        """Return the authenticated caller. Raises `NotAuthenticated` if the credentials are invalid."""
        headers = request.headers
        caller = await self._authenticator.caller(headers.get("authorization"), headers.get(self._header))
        _log.debug("caller_known caller=%r known_by=%s request=%s", caller.name, caller.method, _Request(request))
        return caller


class _Request:
    """Request that is formatted only when a log record shows it."""

    def __init__(self, request: Request) -> None:
        self._scope = request.scope

    def __str__(self) -> str:
        return repr(f"{self._scope['method']} {self._scope['path']}")


REQUIRED = "x-required-permission"
"""Key of an operation's description that names its permission."""
CONFINES = "x-confines-by-namespace"
"""Key of an operation that shows and changes only data in the caller's namespaces."""
CONFINES_TENANTS = "x-confines-by-tenant"
"""Key of an operation that shows and changes only tasks of the caller's tenants."""

OPERATES = "x-recorded"
"""Key of an operation that is recorded in `tasker.operator_actions` with its actor."""
SEVERAL = "x-recorded-before"
"""Key of a recorded operation that uses several transactions: it is recorded before the first."""
UNLESS = "x-recorded-unless"
"""Key that names the body field with which a recorded operation is a dry run."""

Gate = Callable[[Request], Awaitable[AuthenticatedCaller]]
"""Function that returns the caller; raises `NotAuthenticated` if the credentials are invalid."""


async def open_gate(request: Request) -> AuthenticatedCaller:
    """Admit everyone with all permissions: authentication is not configured."""
    return ANYBODY


def needs(
    permission: Permission,
    *,
    confines: bool = False,
    tenants: bool = False,
    operates: bool = False,
    several: bool = False,
    unless: str | None = None,
) -> dict[str, Any]:
    """Return the arguments of a route's declaration that name its permission.

    A caller limited to namespaces reaches a route whose path names a task or a namespace of theirs, and any other route
    only if it `confines`: its function then restricts itself to `namespaces_of` the request. One limited to tenants
    reaches a route whose path names a task of theirs, and any other one only with `tenants`: its function then
    restricts itself to `tenants_of` the request. An operator action
    (`operates`) is recorded with its actor, `unless` the body field of that name is true; with `several` it is recorded
    before it is done.
    """
    flags = ((CONFINES, confines), (CONFINES_TENANTS, tenants), (OPERATES, operates), (SEVERAL, several))
    marks: dict[str, Any] = {mark: True for mark, set_ in flags if set_}
    marks |= {UNLESS: unless} if unless else {}
    return {"openapi_extra": {REQUIRED: str(permission), **marks}}


def caller_of(request: Request) -> AuthenticatedCaller:
    """Return the caller identified by the gate."""
    caller: AuthenticatedCaller = request.state.caller
    return caller


def namespaces_of(request: Request) -> frozenset[str] | None:
    """Return the namespaces in which the caller may use the route, or None for all."""
    namespaces: frozenset[str] | None = request.state.namespaces
    return namespaces


def tenants_of(request: Request) -> frozenset[str] | None:
    """Return the tenants whose tasks the caller may see and change, or None for all."""
    return caller_of(request).tenants


def require_namespace(request: Request, namespace: str) -> None:
    """Check that the caller may use the route in this namespace. Raises `NotPermitted` otherwise."""
    require_one_of(namespaces_of(request), namespace)


def known_caller(request: Request) -> str | None:
    """Return the name of an authenticated caller, or None."""
    caller = caller_of(request)
    return caller.name if caller.known else None


def actor_of(request: Request, given: str | None = None) -> str:
    """Return the actor to record: the name of an authenticated caller, otherwise the given name."""
    return known_caller(request) or given or caller_of(request).name
