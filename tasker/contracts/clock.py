"""Time, identifiers and randomness as arguments, so that a test can set them."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol


class Clock(Protocol):
    """The time of day and a clock that only goes forward."""

    def now(self) -> datetime:
        """The current time, with time zone UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary start, never going back."""
        ...


class Random(Protocol):
    """A source of randomness for jitter."""

    def random(self) -> float:
        """A number in [0.0, 1.0)."""
        ...
