"""When new work is refused, for how long, and how full a buffer is: decisions without IO."""

from __future__ import annotations

import math
from collections import deque
from enum import StrEnum

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.defaults.pressure import BUFFER_WARNING_SHARE, COMPLETION_BUFFER, CRITICAL_DEPTH, OVERFLOW_DEPTH

SHORTEST_SECONDS, LONGEST_SECONDS, UNKNOWN_SECONDS = 1, 300, 30
"""Bounds of what a refusal asks for, and what it asks for while nothing is known of the rate."""


class Level(StrEnum):
    """How deep the work is."""

    NORMAL = "normal"
    WARNING = "warning"
    CRITICAL = "critical"
    OVERFLOW = "overflow"


@dataclass(frozen=True, slots=True)
class DepthLimits:
    """Ready steps of a namespace: from `critical` on new tasks are refused, from `overflow` on urgent ones too.

    Watchers see a `warning` at half of `critical`, and `overflow` when the depth has grown on regardless.
    """

    critical: int = CRITICAL_DEPTH
    overflow: int = OVERFLOW_DEPTH

    def level(self, depth: int) -> Level:
        """The level at that depth."""
        if depth >= self.limit(priority=1):
            return Level.OVERFLOW
        if depth >= self.critical:
            return Level.CRITICAL
        return Level.WARNING if depth >= self.critical / 2 else Level.NORMAL

    def limit(self, priority: int) -> int:
        """The depth from which on new tasks of that priority are refused."""
        return max(self.critical, self.overflow) if priority > 0 else self.critical

    def retry_after(self, depth: int, per_second: float | None, priority: int = 0) -> int | None:
        """None when new tasks are taken; else whole seconds until half of the limit is free at that rate."""
        limit = self.limit(priority)
        if depth < limit:
            return None
        if not per_second:
            return UNKNOWN_SECONDS
        seconds = (depth - limit / 2) / per_second
        return math.ceil(min(LONGEST_SECONDS, max(SHORTEST_SECONDS, seconds)))


class BufferLevel(StrEnum):
    """How full a bounded buffer is."""

    NORMAL = "normal"
    HIGH = "high"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class BufferLimits:
    """A buffer's size, and the share of it from which on it is warned of."""

    size: int = COMPLETION_BUFFER
    warning_share: float = BUFFER_WARNING_SHARE

    def fill(self, count: int, before: BufferLevel) -> BufferLevel:
        """How full it is. A warning is over at half of its mark, so that it is not said with every entry."""
        if count >= self.size:
            return BufferLevel.FULL
        mark = self.warning_share * self.size
        high = count >= mark or (before is not BufferLevel.NORMAL and count > mark / 2)
        return BufferLevel.HIGH if high and count else BufferLevel.NORMAL


class DrainRate:
    """Steps per second that left a queue over the last `window` seconds, from readings of a counter that only grows."""

    def __init__(self, window: float = 60.0) -> None:
        self._window = window
        self._readings: deque[tuple[float, int]] = deque()

    def read(self, now: float, taken: int) -> None:
        """A reading; `now` never goes back. One within a second of the last is left out."""
        if self._readings and now - self._readings[-1][0] < 1.0:
            return
        self._readings.append((now, taken))
        while len(self._readings) > 2 and self._readings[1][0] <= now - self._window:
            self._readings.popleft()

    @property
    def per_second(self) -> float | None:
        """The rate; None until two readings are there."""
        if len(self._readings) < 2:
            return None
        (began, first), (ended, last) = self._readings[0], self._readings[-1]
        return max(0, last - first) / (ended - began)
