"""Connecting again to a server that does not answer: growing pauses with jitter, for as long as the process lives."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable
from types import TracebackType
from typing import Self

from tasker.contracts.backoff import Backoff
from tasker.db.database import describe_url, host_and_port
from tasker.errors import DatabaseUnavailable
from tasker.resilience.outage import Outage

BACKOFF = Backoff(0.1, 5.0, spread=0.5)
"""Seconds between two attempts to connect."""
_log = logging.getLogger("tasker.database")


_outages: dict[str, Outage] = {}


def outage_of(url: str) -> Outage:
    """What the connections of this process know together of one database."""
    return _outages.setdefault(
        f"{describe_url(url)} {host_and_port(url)}", Outage("database_unreachable", "database_reconnected", _log)
    )


class Pace:
    """The pause before the next attempt of one connection: `async with pace:` around the attempt.

    Not stamina, which repeats a block until it succeeds: here every failed attempt is answered to the caller at once,
    who may have a circuit breaker, other work, or be told to stop. Only the next attempt waits.
    """

    def __init__(self, name: str, outage: Outage, clock: Callable[[], float] = time.monotonic) -> None:
        self._name, self._outage, self._clock = name, outage, clock
        self._began = 0.0
        self._failures = 0
        self._not_before = 0.0

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
        if isinstance(error, DatabaseUnavailable):
            self._failed(error)
        elif error is None:
            self._failures = 0
            self._outage.answered()

    def _failed(self, error: DatabaseUnavailable) -> None:
        seconds = BACKOFF.pause(self._failures, random.random())
        self._failures += 1
        self._not_before = self._clock() + seconds
        said = error.message.replace("\n", " ")
        _log.debug("connection=%r attempt=%s next_in_s=%.1f: %s", self._name, self._failures, seconds, said)
        self._outage.failed(error, self._began)
