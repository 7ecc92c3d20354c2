"""Caller of a request and its permissions by namespace."""

from __future__ import annotations

from typing import Literal

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.rules.permissions import EVERYTHING, Grant, Permission
from tasker.errors import NotPermitted

Method = Literal["disabled", "jwt", "api_key"]


@dataclass(frozen=True, slots=True)
class AuthenticatedCaller:
    """Sender of a request; `name` is recorded with its actions.

    `confined_to` are the only namespaces that they see and change, whatever their grants say; None: all of them.
    `known_until` is when their token expires, in seconds since 1970; None: never.
    """

    name: str
    grants: frozenset[Grant]
    method: Method = "disabled"
    confined_to: frozenset[str] | None = None
    known_until: float | None = None

    @property
    def known(self) -> bool:
        """True if the caller has authenticated."""
        return self.method != "disabled"

    def may(self, permission: Permission) -> bool:
        """Return True if the caller has the permission in at least one namespace."""
        return any(grant.covers(permission) for grant in self.grants)

    def namespaces(self, permission: Permission) -> frozenset[str] | None:
        """Return the namespaces in which the caller has the permission; None means all."""
        granted = [grant.namespace for grant in self.grants if grant.covers(permission)]
        if None in granted:
            return self.confined_to
        named = frozenset(name for name in granted if name is not None)
        return named if self.confined_to is None else named & self.confined_to

    def require(self, permission: Permission) -> None:
        """Raise `NotPermitted` if the caller has the permission in no namespace."""
        if not self.may(permission):
            raise NotPermitted(f"Missing required permission: {permission}")

    def require_in(self, permission: Permission, namespace: str) -> None:
        """Raise `NotPermitted` if the caller lacks the permission in this namespace."""
        self.require(permission)
        where = self.namespaces(permission)
        if where is not None and namespace not in where:
            raise NotPermitted(f"Missing required permission: {permission} in namespace {namespace}")


ANYBODY = AuthenticatedCaller("anonymous", frozenset({Grant(EVERYTHING)}))
"""Caller of every request if authentication is disabled."""
