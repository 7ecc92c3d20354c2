"""The caller of a request and its permissions; refused callers are counted."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from typing import Literal

from tasker.dataclasses import dataclass
from tasker.errors import NotAuthenticated, NotPermitted, TaskerError
from tasker.logging.lines import LogThrottle
from tasker.operations.permissions import EVERYTHING, OF_TEMPLATES, Grant, Permission
from tasker.services.approvals import Approver

Method = Literal["disabled", "jwt", "api_key"]


@dataclass(frozen=True, slots=True)
class AuthenticatedCaller:
    """Sender of a request; `name` is recorded with its actions.

    `confined_to` are the only namespaces that they see and change, regardless of their grants; None: all of them.
    `tenants` are the only tenants whose tasks they see and change; None: all, and tasks without a tenant.
    `known_until` is when their token expires, in seconds since 1970; None: never.
    """

    name: str
    grants: frozenset[Grant]
    method: Method = "disabled"
    confined_to: frozenset[str] | None = None
    known_until: float | None = None
    tenants: frozenset[str] | None = None

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

    @property
    def approver(self) -> Approver:
        """The caller as a person who decides, with the permissions that templates name."""
        named: list[tuple[str | None, str | None]] = []
        for grant in self.grants:
            resource, _, action = grant.word.partition(":")
            if grant.word == EVERYTHING or (resource == OF_TEMPLATES and action == "*"):
                named.append((None, grant.namespace))
            elif resource == OF_TEMPLATES:
                named.append((grant.word, grant.namespace))
        return Approver(self.name, sorted(named, key=str))

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


_log = logging.getLogger("tasker.api")


class RefusedCallers:
    """Logger of refused credentials and of missing permissions, each with a separate log throttle.

    It logs the first refusal at once, and others with the first of the next period and at the end. Credentials are
    never logged.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._credentials = _Kind("credentials_refused", LogThrottle(monotonic))
        self._permissions = _Kind("permission_denied", LogThrottle(monotonic))

    def note(self, error: TaskerError, *, request: str, address: str, caller: str | None) -> None:
        """Record a refused request."""
        kind = self._credentials if isinstance(error, NotAuthenticated) else self._permissions
        kind.note(f"request={request} from={address}{f' caller={caller!r}' if caller else ''}: {error}")

    def close(self) -> None:
        """Log the refusals not logged yet."""
        for kind in (self._credentials, self._permissions):
            kind.flush()


class _Kind:
    def __init__(self, name: str, seldom: LogThrottle) -> None:
        self._name, self._seldom, self._last = name, seldom, ""

    def note(self, what: str) -> None:
        self._last = what
        _log.debug("%s %s", self._name, what)
        if self._seldom.hit():
            self.flush()

    def flush(self) -> None:
        if count := self._seldom.flush():
            _log.warning("%s count=%d %s", self._name, count, self._last)
