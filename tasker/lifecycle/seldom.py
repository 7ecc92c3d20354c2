"""Throttle for frequent log messages: the first is logged at once, later ones once per period with their count."""

from __future__ import annotations

from collections.abc import Callable

PERIOD_SECONDS = 60.0


class LogThrottle:
    """Counter of an event: the first is logged at once, later ones with the first event of the next period.

    `monotonic` is a clock in seconds. A component that stops logs the rest with `flush`.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._count = 0
        self._told: float | None = None

    def hit(self) -> bool:
        """Count the event and return whether to log now."""
        self._count += 1
        return self._told is None or self._monotonic() - self._told >= PERIOD_SECONDS

    def flush(self) -> int:
        """Return how often the event happened since the last log message, and begin a new period."""
        count, self._count, self._told = self._count, 0, self._monotonic()
        return count
