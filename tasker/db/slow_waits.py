"""Log of slow waits for a connection: one line per period instead of one per caller."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from tasker.lifecycle.seldom import LogThrottle

_log = logging.getLogger("tasker.database")


class SlowWaits:
    """Logger of the first slow wait at once, and of others with the first of the next period or at the end."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._seldom, self._longest = LogThrottle(monotonic), 0.0

    def note(self, seconds: float, sizes: Callable[[], dict[str, int]]) -> None:
        """Record a wait of `seconds`; `sizes` returns the sizes of the pool."""
        self._longest = max(self._longest, seconds)
        if self._seldom.hit():
            self.tell(sizes)

    def tell(self, sizes: Callable[[], dict[str, int]]) -> None:
        """Log one line for the waits not logged yet."""
        if count := self._seldom.flush():
            _log.warning("pool_slow_acquire count=%d longest_ms=%.0f %s", count, self._longest * 1000, sizes())
        self._longest = 0.0
