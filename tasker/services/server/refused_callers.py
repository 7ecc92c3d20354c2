"""Callers who were not let through: a warning in each period, whoever knocks how often."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from tasker.errors import NotAuthenticated, TaskerError
from tasker.lifecycle.seldom import LogThrottle

_log = logging.getLogger("tasker.api")


class RefusedCallers:
    """Tells of the first whose credentials are refused, and of the first who lacks a permission, at once; of others
    with the first one of the next period, and at the end. What callers have shown is never told.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._credentials = _Kind("credentials_refused", LogThrottle(monotonic))
        self._permissions = _Kind("permission_denied", LogThrottle(monotonic))

    def note(self, error: TaskerError, *, request: str, address: str, caller: str | None) -> None:
        """Somebody was not let through."""
        kind = self._credentials if isinstance(error, NotAuthenticated) else self._permissions
        kind.note(f"request={request} from={address}{f' caller={caller!r}' if caller else ''}: {error}")

    def close(self) -> None:
        """Tell of those that none was told about."""
        for kind in (self._credentials, self._permissions):
            kind.tell()


class _Kind:
    def __init__(self, name: str, seldom: LogThrottle) -> None:
        self._name, self._seldom, self._last = name, seldom, ""

    def note(self, what: str) -> None:
        self._last = what
        _log.debug("%s %s", self._name, what)
        if self._seldom.hit():
            self.tell()

    def tell(self) -> None:
        if count := self._seldom.flush():
            _log.warning("%s count=%d %s", self._name, count, self._last)
