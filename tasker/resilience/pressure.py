"""Backpressure decisions without IO: when new work is refused and for how long, and how full a buffer is."""

from __future__ import annotations

import math
from collections import deque
from enum import StrEnum

from tasker.settings.queues import DepthThresholds

SHORTEST_SECONDS, LONGEST_SECONDS, UNKNOWN_SECONDS = 1, 300, 30
"""Bounds of the retry delay in a refusal, and the delay while the rate is unknown."""


class Level(StrEnum):
    """Level of the amount of waiting work."""

    NORMAL = "normal"
    WARNING = "warning"
    CRITICAL = "critical"
    OVERFLOW = "overflow"


def depth_level(limits: DepthThresholds, depth: int) -> Level:
    """Return the level of a namespace with this many ready steps; a `warning` begins at half of the critical depth."""
    if depth >= depth_limit(limits, priority=1):
        return Level.OVERFLOW
    if depth >= limits.critical_threshold:
        return Level.CRITICAL
    return Level.WARNING if depth >= limits.critical_threshold / 2 else Level.NORMAL


def depth_limit(limits: DepthThresholds, priority: int) -> int:
    """Return the depth at which new tasks of this priority are refused; urgent ones are refused last."""
    critical = limits.critical_threshold
    return max(critical, limits.overflow_threshold) if priority > 0 else critical


def retry_after(limits: DepthThresholds, depth: int, per_second: float | None, priority: int = 0) -> int | None:
    """Return None if new tasks are accepted, else the seconds until half of the limit is free at that rate."""
    limit = depth_limit(limits, priority)
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


def buffer_level(size: int, warning_share: float, count: int, before: BufferLevel) -> BufferLevel:
    """Return the fill level. A warning ends only at half of its threshold, so that it is not repeated often."""
    if count >= size:
        return BufferLevel.FULL
    mark = warning_share * size
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
