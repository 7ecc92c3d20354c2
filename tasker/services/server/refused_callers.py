"""Log of refused callers: one warning per period, however many requests are refused."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from tasker.errors import NotAuthenticated, TaskerError
from tasker.lifecycle.seldom import LogThrottle

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
