"""What may happen often, and is told seldom: the first at once, those of a period together."""

from __future__ import annotations

from collections.abc import Callable

PERIOD_SECONDS = 60.0


class LogThrottle:
    """Counts what happens: the first is to be told at once, others with the first one of the next period.

    `monotonic` is a clock in seconds. Whoever stops tells what is left.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._count = 0
        self._told: float | None = None

    def hit(self) -> bool:
        """It has happened once more: whether it is to be told now."""
        self._count += 1
        return self._told is None or self._monotonic() - self._told >= PERIOD_SECONDS

    def flush(self) -> int:
        """It is told now: how often it has happened since it was told last."""
        count, self._count, self._told = self._count, 0, self._monotonic()
        return count
