"""Backpressure decisions without IO: when new work is refused and for how long, and how full a buffer is."""

from __future__ import annotations

import math
from collections import deque
from enum import StrEnum

from tasker.dataclasses import dataclass
from tasker.settings.queues import DepthThresholds, HandlerDispatch, OverflowPolicy

SHORTEST_SECONDS, LONGEST_SECONDS, UNKNOWN_SECONDS = 1, 300, 30
"""Bounds of the retry delay in a refusal, and the delay while the rate is unknown."""


class Level(StrEnum):
    """Level of the amount of waiting work."""

    NORMAL = "normal"
    WARNING = "warning"
    CRITICAL = "critical"
    OVERFLOW = "overflow"


@dataclass(frozen=True, slots=True)
class DepthLimits:
    """Ready steps of a namespace: from `critical` new tasks are refused, from `overflow` urgent ones too.

    Monitoring sees a `warning` at half of `critical`, and `overflow` if the depth has grown further.
    """

    critical: int = DepthThresholds.critical_threshold
    overflow: int = DepthThresholds.overflow_threshold

    def level(self, depth: int) -> Level:
        """Return the level at this depth."""
        if depth >= self.limit(priority=1):
            return Level.OVERFLOW
        if depth >= self.critical:
            return Level.CRITICAL
        return Level.WARNING if depth >= self.critical / 2 else Level.NORMAL

    def limit(self, priority: int) -> int:
        """Return the depth at which new tasks of this priority are refused."""
        return max(self.critical, self.overflow) if priority > 0 else self.critical

    def retry_after(self, depth: int, per_second: float | None, priority: int = 0) -> int | None:
        """Return None if new tasks are accepted, else the seconds until half of the limit is free at that rate."""
        limit = self.limit(priority)
        if depth < limit:
            return None
        if not per_second:
            return UNKNOWN_SECONDS
        seconds = (depth - limit / 2) / per_second
        return math.ceil(min(LONGEST_SECONDS, max(SHORTEST_SECONDS, seconds)))


class BufferLevel(StrEnum):
    """Fill level of a bounded buffer."""

    NORMAL = "normal"
    HIGH = "high"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class BufferLimits:
    """Size of a buffer, and the share of it at which a warning is logged."""

    size: int = HandlerDispatch.completion_buffer_size
    warning_share: float = OverflowPolicy.log_warning_threshold

    def fill(self, count: int, before: BufferLevel) -> BufferLevel:
        """Return the fill level. A warning ends only at half of its threshold, so that it is not repeated often."""
        if count >= self.size:
            return BufferLevel.FULL
        mark = self.warning_share * self.size
        high = count >= mark or (before is not BufferLevel.NORMAL and count > mark / 2)
        return BufferLevel.HIGH if high and count else BufferLevel.NORMAL


class DrainRate:
    """Steps per second that left a queue over the last `window` seconds, from readings of a monotonic counter."""

    def __init__(self, window: float = 60.0) -> None:
        self._window = window
        self._readings: deque[tuple[float, int]] = deque()

    def read(self, now: float, taken: int) -> None:
        """Record a reading; `now` must not decrease. A reading within a second of the last one is ignored."""
        if self._readings and now - self._readings[-1][0] < 1.0:
            return
        self._readings.append((now, taken))
        while len(self._readings) > 2 and self._readings[1][0] <= now - self._window:
            self._readings.popleft()

    @property
    def per_second(self) -> float | None:
        """Steps per second; None until there are two readings."""
        if len(self._readings) < 2:
            return None
        (began, first), (ended, last) = self._readings[0], self._readings[-1]
        return max(0, last - first) / (ended - began)
