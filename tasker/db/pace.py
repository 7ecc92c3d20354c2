"""Connecting again to a server that does not answer: growing pauses with jitter, for as long as the process lives."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tasker.contracts.backoff import BackoffPolicy
from tasker.db.database import describe_url, host_and_port
from tasker.errors import DatabaseUnavailable, TooManyConnections
from tasker.resilience.outage import Outage

BACKOFF = BackoffPolicy(0.1, 5.0, spread=0.5)
"""Seconds between two attempts to connect."""
_log = logging.getLogger("tasker.database")


_outages: dict[str, Outage] = {}
_full: dict[str, Fullness] = {}


def outage_of(url: str) -> Outage:
    """What the connections of this process know together of one database."""
    return _outages.setdefault(_key(url), Outage("database_unreachable", "database_reconnected", _log))


def fullness_of(url: str) -> Fullness:
    """Return what the connections of this process know together of one database's room for sessions."""
    return _full.setdefault(_key(url), Fullness())


def _key(url: str) -> str:
    return f"{describe_url(url)} {host_and_port(url)}"


class Fullness:
    """Whether a server refuses sessions because it has too many: one log line when that begins, one when it ends."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._last = 0.0
        """When the last attempt began that was refused."""

    def refused(self, error: DatabaseUnavailable, began: float) -> None:
        """Note that the attempt that `began` then was refused."""
        self._last = max(self._last, began)
        if self._since is None:
            self._since = began
            _log.warning("database_full %s; open connections are used", " ".join(error.message.split()))

    def opened(self, began: float, now: float) -> None:
        """Note that the attempt that `began` then succeeded, which says nothing of those that began later."""
        if self._since is not None and began > self._last:
            _log.warning("database_has_room after_s=%.1f", now - self._since)
            self._since = None


class ReconnectPause:
    """The pause before the next attempt of one connection: `async with pace:` around the attempt.

    Not stamina, which repeats a block until it succeeds: here every failed attempt is answered to the caller at once,
    who may have a circuit breaker, other work, or be told to stop. Only the next attempt waits.
    """

    def __init__(
        self, name: str, outage: Outage, fullness: Fullness, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._name, self._outage, self._fullness, self._clock = name, outage, fullness, clock
        self._began = 0.0
        self._failures = 0
        self._not_before = 0.0
        self.is_refused = False
        """A statement was refused, and the outage that this began is not over."""

    async def __aenter__(self) -> Self:
        """Wait until the next attempt may be made."""
        if self._failures and (seconds := self._not_before - self._clock()) > 0:
            await asyncio.sleep(seconds)
        self._began = self._outage.now()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Remember how the attempt ended."""
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
        """There is no connection to write with: pause before the next attempt to open one."""
        self._pause(error)
        self._outage.failed(error, self._outage.now() if began is None else began)

    def refused(self, error: DatabaseUnavailable) -> None:
        """The connection was open, and the server lacks what statements need: pause as after a failure."""
        self.is_refused = True
        self._pause(error)
        self._outage.refused(error)

    def used(self) -> None:
        """A statement has succeeded after one was refused."""
        self._outage.answered()
        if not self._outage.is_on:
            self.is_refused, self._failures = False, 0

    def _pause(self, error: DatabaseUnavailable) -> None:
        seconds = BACKOFF.pause(self._failures, random.random())
        self._failures += 1
        self._not_before = self._clock() + seconds
        said = error.message.replace("\n", " ")
        _log.debug("connection=%r attempt=%s next_in_s=%.1f: %s", self._name, self._failures, seconds, said)
