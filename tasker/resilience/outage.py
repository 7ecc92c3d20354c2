"""Shared outage state of one server in a process: one log line when it becomes unreachable, one when it is back.

Consequences of an outage (breakers that open, lost listeners) are logged at DEBUG: an operator on call needs the cause,
once.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from weakref import WeakSet

from tasker.errors import (
    BackendUnavailable,
    CircuitBreakerOpen,
    DatabaseError,
    DatabaseUnavailable,
    MessagingError,
    TaskerError,
)


def is_outage(error: object) -> bool:
    """Return True for an error that every call to an unreachable server raises."""
    return isinstance(error, (DatabaseUnavailable, BackendUnavailable, CircuitBreakerOpen))


def belongs_to_outage(error: object) -> bool:
    """Return True for an outage error, or a failed call during an outage, which is logged itself."""
    return is_outage(error) or (isinstance(error, (DatabaseError, MessagingError)) and any(o.is_on for o in list(_all)))


def level_of(error: object) -> int:
    """Return the log level for a failed call: DEBUG in an outage, which is logged separately, else WARNING."""
    return logging.DEBUG if is_outage(error) else logging.WARNING


class Failing:
    """Work that is repeated until it succeeds: one log line per cause, and one when it succeeds again.

    `event` begins the lines. Consequences of an outage are logged elsewhere.
    """

    def __init__(self, event: str, log: logging.Logger) -> None:
        self._event, self._log, self._cause = event, log, ""

    def failed(self, error: Exception) -> None:
        """Record a failure; log it if its cause is new."""
        if not is_outage(error) and (cause := str(error)) != self._cause:
            self._cause = cause
            self._log.warning("%s_failed reason=%s; it is tried again until it succeeds", self._event, cause)

    def succeeded(self) -> None:
        """Record a success; log it after failures."""
        if self._cause:
            self._cause = ""
            self._log.warning("%s_recovered", self._event)


QUIET_SECONDS = 10.0
"""Minimum time from the last refused statement to the end of the outage, in seconds.

It is longer than the pauses between two attempts, since reads may succeed in between.
"""


class Outage:
    """Outage state of one server. `lost` and `back` are the events of the two log lines."""

    def __init__(self, lost: str, back: str, log: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._lost, self._back, self._log, self.now = lost, back, log, clock
        self._since: float | None = None
        self._answered_at = self._refused_at = float("-inf")
        _all.add(self)

    @property
    def is_on(self) -> bool:
        """True from the first failed call until one succeeds."""
        return self._since is not None

    def failed(self, error: TaskerError, began: float) -> None:
        """Record that a call started at `began` could not reach the server, unless another call succeeded since.

        A failure that retrying cannot fix (a wrong password) needs an operator and is logged as an error.
        """
        if self.is_on or began < self._answered_at:
            return
        self._since = began
        retries = "trying again until it answers" if error.retryable else "trying again, although that cannot help"
        level = logging.WARNING if error.retryable else logging.ERROR
        self._log.log(level, "%s %s; %s", self._lost, " ".join(error.message.split()), retries)

    def refused(self, error: TaskerError) -> None:
        """Record that the server can be reached but cannot work: it accepts no writes, or lacks resources."""
        self._refused_at = self.now()
        self.failed(error, self._refused_at)

    def answered(self) -> None:
        """Record a successful call. It ends the outage, unless a statement was refused within `QUIET_SECONDS`."""
        now = self.now()
        if now - self._refused_at < QUIET_SECONDS:
            return
        self._answered_at = now
        if self._since is not None:
            self._log.warning("%s after_s=%.1f", self._back, now - self._since)
            self._since = None


_all = WeakSet[Outage]()
"""All outages of this process."""
