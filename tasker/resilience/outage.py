"""One server as all parts of a process see it: one line in the log when it goes away, one when it is back.

What follows from an outage (breakers that open, listeners that are lost) is told at DEBUG: whoever is called at night
needs the cause, once.
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
    """True for what a server that is away makes of a call, however often it is tried."""
    return isinstance(error, (DatabaseUnavailable, BackendUnavailable, CircuitBreakerOpen))


def belongs_to_outage(error: object) -> bool:
    """True for an error of a call to a server that is away, or that failed while one is away: the outage has its own
    line."""
    return is_outage(error) or (isinstance(error, (DatabaseError, MessagingError)) and any(o.is_on for o in list(_all)))


def level_of(error: object) -> int:
    """At which level to tell of a call that failed: an outage is told by itself."""
    return logging.DEBUG if is_outage(error) else logging.WARNING


class Failing:
    """Work that is repeated until it succeeds: one line in the log for each cause, and one when it is over.

    `event` begins the lines. What follows from an outage is told elsewhere.
    """

    def __init__(self, event: str, log: logging.Logger) -> None:
        self._event, self._log, self._cause = event, log, ""

    def failed(self, error: Exception) -> None:
        """It failed once more."""
        if not is_outage(error) and (cause := str(error)) != self._cause:
            self._cause = cause
            self._log.warning("%s_failed reason=%s; it is tried again until it succeeds", self._event, cause)

    def succeeded(self) -> None:
        """It has succeeded."""
        if self._cause:
            self._cause = ""
            self._log.warning("%s_recovered", self._event)


QUIET_SECONDS = 10.0
"""An outage that refused statements began ends so long after the last of them at the earliest: longer than the pauses
between two attempts, since reads may succeed in between."""


class Outage:
    """Whether one server answers. `lost` and `back` begin the two lines."""

    def __init__(self, lost: str, back: str, log: logging.Logger, clock: Callable[[], float] = time.monotonic) -> None:
        self._lost, self._back, self._log, self.now = lost, back, log, clock
        self._since: float | None = None
        self._answered_at = self._refused_at = float("-inf")
        _all.add(self)

    @property
    def is_on(self) -> bool:
        """True from the first call that failed until one succeeds."""
        return self._since is not None

    def failed(self, error: TaskerError, began: float) -> None:
        """A call that `began` then could not reach it; it says nothing when another one succeeded meanwhile.

        What trying again does not mend (a wrong password) needs a person, and is an error in the log.
        """
        if self.is_on or began < self._answered_at:
            return
        self._since = began
        mends = "trying again until it answers" if error.retryable else "trying again, which will not mend it"
        level = logging.WARNING if error.retryable else logging.ERROR
        self._log.log(level, "%s %s; %s", self._lost, " ".join(error.message.split()), mends)

    def refused(self, error: TaskerError) -> None:
        """The server can be reached, and cannot do its work: it accepts no writes, or lacks resources."""
        self._refused_at = self.now()
        self.failed(error, self._refused_at)

    def answered(self) -> None:
        """A call has succeeded. It ends the outage, unless a statement was refused within `QUIET_SECONDS`."""
        now = self.now()
        if now - self._refused_at < QUIET_SECONDS:
            return
        self._answered_at = now
        if self._since is not None:
            self._log.warning("%s after_s=%.1f", self._back, now - self._since)
            self._since = None


_all = WeakSet[Outage]()
"""Those of this process."""
