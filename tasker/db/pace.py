"""Reconnection to a server that does not answer: growing pauses with jitter, as long as the process lives."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tasker.clock import BackoffPolicy
from tasker.db.database import describe_url, host_and_port
from tasker.errors import DatabaseUnavailable, TooManyConnections
from tasker.resilience.outage import Outage

BACKOFF = BackoffPolicy(0.1, 5.0, spread=0.5)
"""Pause between two attempts to connect, in seconds."""
_log = logging.getLogger("tasker.database")


_outages: dict[str, Outage] = {}
_full: dict[str, Fullness] = {}


def outage_of(url: str) -> Outage:
    """Return the outage state that all connections of this process to one database share."""
    return _outages.setdefault(_key(url), Outage("database_unreachable", "database_reconnected", _log))


def fullness_of(url: str) -> Fullness:
    """Return the state "server has no free sessions" that all connections of this process to one database share."""
    return _full.setdefault(_key(url), Fullness())


def _key(url: str) -> str:
    return f"{describe_url(url)} {host_and_port(url)}"


class Fullness:
    """State of a server that refuses sessions because it has too many; its start and its end are logged."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._last = 0.0
        """Start of the last refused attempt."""

    def refused(self, error: DatabaseUnavailable, began: float) -> None:
        """Record that the attempt started at `began` was refused."""
        self._last = max(self._last, began)
        if self._since is None:
            self._since = began
            _log.warning("database_full %s; open connections are used", " ".join(error.message.split()))

    def opened(self, began: float, now: float) -> None:
        """Record that the attempt started at `began` succeeded, which says nothing about attempts that began later."""
        if self._since is not None and began > self._last:
            _log.warning("database_has_room after_s=%.1f", now - self._since)
            self._since = None


class ReconnectPause:
    """Pause before the next attempt of one connection: use `async with pace:` around the attempt.

    It does not use stamina, which repeats a block until it succeeds: here every failed attempt is reported at once to
    the caller, which may have a circuit breaker, other work, or a request to stop. Only the next attempt waits.
    """

    def __init__(
        self, name: str, outage: Outage, fullness: Fullness, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name, self._outage, self._fullness, self._clock = name, outage, fullness, clock
        self._began = 0.0
        self._failures = 0
        self._not_before = 0.0
        self.is_refused = False
        """True after a refused statement until the outage that it began is over."""

    async def __aenter__(self) -> Self:
        """Wait until the next attempt may start."""
        if self._failures and (seconds := self._not_before - self._clock()) > 0:
            await asyncio.sleep(seconds)
        self._began = self._outage.now()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Record how the attempt ended."""
        if isinstance(error, TooManyConnections):
            self._pause(error)
            self._fullness.refused(error, self._began)
        elif isinstance(error, DatabaseUnavailable):
            self.failed(error, self._began)
        elif error is None:
            self._outage.answered()
            self._fullness.opened(self._began, self._outage.now())
            if not self.is_refused:
                self._failures = 0

    def failed(self, error: DatabaseUnavailable, began: float | None = None) -> None:
        """Record that no connection for writing is available, and pause before the next attempt to open one."""
        self._pause(error)
        self._outage.failed(error, self._outage.now() if began is None else began)

    def refused(self, error: DatabaseUnavailable) -> None:
        """Record a statement refused for lack of server resources on an open connection; pause as after a failure."""
        self.is_refused = True
        self._pause(error)
        self._outage.refused(error)

    def used(self) -> None:
        """Record that a statement succeeded after one was refused."""
        self._outage.answered()
        if not self._outage.is_on:
            self.is_refused, self._failures = False, 0

    def _pause(self, error: DatabaseUnavailable) -> None:
        seconds = BACKOFF.pause(self._failures, random.random())
        self._failures += 1
        self._not_before = self._clock() + seconds
        reason = error.message.replace("\n", " ")
        _log.debug("connection=%r attempt=%s next_in_s=%.1f: %s", self._name, self._failures, seconds, reason)
