"""Waits for a connection that took too long: a line in each period, not one for everybody who waited in it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

PERIOD_SECONDS = 60.0
_log = logging.getLogger("tasker.database")


class SlowWaits:
    """Tells of the first at once, and of the others together: with the first one of the next period, and at the end."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._count, self._longest = 0, 0.0
        self._told: float | None = None

    def note(self, seconds: float, sizes: Callable[[], dict[str, int]]) -> None:
        """Somebody has waited for so long; `sizes` says how full the pool is."""
        self._count, self._longest = self._count + 1, max(self._longest, seconds)
        if self._told is None or self._monotonic() - self._told >= PERIOD_SECONDS:
            self.tell(sizes)

    def tell(self, sizes: Callable[[], dict[str, int]]) -> None:
        """Write a line about those that none was written about."""
        if self._count:
            _log.warning("pool_slow_acquire count=%d longest_ms=%.0f %s", self._count, self._longest * 1000, sizes())
        self._count, self._longest, self._told = 0, 0.0, self._monotonic()
