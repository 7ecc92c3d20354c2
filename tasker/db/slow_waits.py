"""Waits for a connection that took too long: a line in each period, not one for everybody who waited in it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from tasker.lifecycle.seldom import LogThrottle

_log = logging.getLogger("tasker.database")


class SlowWaits:
    """Tells of the first at once, and of the others together: with the first one of the next period, and at the end."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._seldom, self._longest = LogThrottle(monotonic), 0.0

    def note(self, seconds: float, sizes: Callable[[], dict[str, int]]) -> None:
        """Somebody has waited for so long; `sizes` says how full the pool is."""
        self._longest = max(self._longest, seconds)
        if self._seldom.hit():
            self.tell(sizes)

    def tell(self, sizes: Callable[[], dict[str, int]]) -> None:
        """Write a line about those that none was written about."""
        if count := self._seldom.flush():
            _log.warning("pool_slow_acquire count=%d longest_ms=%.0f %s", count, self._longest * 1000, sizes())
        self._longest = 0.0
