"""Ports for time and randomness, so that tests can control them."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


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
