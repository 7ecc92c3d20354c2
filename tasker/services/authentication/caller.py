"""Who calls, and what they may do where."""

from __future__ import annotations

from typing import Literal

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.rules.permissions import EVERYTHING, Grant, Permission
from tasker.errors import NotPermitted

Method = Literal["disabled", "jwt", "api_key"]


@dataclass(frozen=True, slots=True)
class AuthenticatedCaller:
    """The sender of a request: `name` is kept with what they do.

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
        """True when they have shown who they are."""
        return self.method != "disabled"

    def may(self, permission: Permission) -> bool:
        """Whether they may do that, in some namespace at least."""
        return any(grant.covers(permission) for grant in self.grants)

    def namespaces(self, permission: Permission) -> frozenset[str] | None:
        """Where they may do that; None: everywhere."""
        granted = [grant.namespace for grant in self.grants if grant.covers(permission)]
        if None in granted:
            return self.confined_to
        named = frozenset(name for name in granted if name is not None)
        return named if self.confined_to is None else named & self.confined_to

    def require(self, permission: Permission) -> None:
        """Raises `NotPermitted`."""
        if not self.may(permission):
            raise NotPermitted(f"Missing required permission: {permission}")

    def require_in(self, permission: Permission, namespace: str) -> None:
        """Raises `NotPermitted` where they may not do that in this namespace."""
        self.require(permission)
        where = self.namespaces(permission)
        if where is not None and namespace not in where:
            raise NotPermitted(f"Missing required permission: {permission} in namespace {namespace}")


ANYBODY = AuthenticatedCaller("anonymous", frozenset({Grant(EVERYTHING)}))
"""Whoever calls where nobody is asked who they are."""
