"""Clock and random numbers as arguments, the real ones, UUIDs of version 7, and back-off with jitter."""

from __future__ import annotations

import os
import time
from datetime import UTC, datetime
from typing import Protocol

from tasker.dataclasses import dataclass


class Clock(Protocol):
    """Wall clock and monotonic clock."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        ...

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start; never decreases."""
        ...


class Random(Protocol):
    """Source of randomness for jitter."""

    def random(self) -> float:
        """Return a number in [0.0, 1.0)."""
        ...


MOST_DOUBLINGS = 64
"""Largest exponent of the backoff, since the number of failures is unbounded; practical limits are reached earlier."""


def between(low: float, high: float, chance: float) -> float:
    """Interpolate between `low` and `high` by `chance`, a random number from 0 to 1."""
    return low + (high - low) * chance


def jittered(seconds: float, spread: float, chance: float) -> float:
    """Return `seconds` changed by at most the share `spread`, up or down, by the random `chance` from 0 to 1.

    Jitter keeps processes that failed or slept together from retrying together.
    """
    return seconds * between(1 - spread, 1 + spread, chance)


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """Exponential backoff in seconds: starts at `first`, doubles up to `longest`; `spread` is the share of jitter."""

    first: float
    longest: float
    spread: float = 0.0

    def pause(self, failures: int, chance: float = 0.5) -> float:
        """Return the pause after this many consecutive failures, with jitter by the random `chance` from 0 to 1."""
        plain = min(self.first * 2.0 ** min(failures, MOST_DOUBLINGS), self.longest)
        return jittered(plain, self.spread, chance)

    def after(self, pause: float) -> float:
        """Return the pause without jitter that follows `pause`; the limits may have changed in between."""
        return min(pause * 2, self.longest)


class SystemClock:
    """The machine's clocks."""

    def now(self) -> datetime:
        """Return the current time in UTC."""
        return datetime.now(UTC)

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start, which never decrease."""
        return time.monotonic()


def new_uuid() -> str:
    """Return a new, time-ordered identifier (UUID version 7) as text."""
    return _uuid7(int.from_bytes(os.urandom(10), "big"))


def new_task_uuid() -> str:
    """Return a new task identifier: a UUID version 7 whose last 24 bits are zero, which number the task's steps."""
    return _uuid7(int.from_bytes(os.urandom(10), "big") & ~0xFFFFFF)


def _uuid7(random: int) -> str:
    milliseconds = time.time_ns() // 1_000_000
    value = (
        (milliseconds << 80) | (0x7 << 76) | ((random >> 64 & 0xFFF) << 64) | (0b10 << 62) | (random & (1 << 62) - 1)
    )
    text = f"{value:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"
