"""Pauses before something is tried again: they double, are bounded, and differ between processes."""

from __future__ import annotations

from tasker.contracts.dataclasses import dataclass

MOST_DOUBLINGS = 64
"""More than any bound needs; the number of failures has none."""


def between(low: float, high: float, chance: float) -> float:
    """The value at `chance`, a random number from 0 to 1, on the way from `low` to `high`."""
    return low + (high - low) * chance


def jittered(seconds: float, spread: float, chance: float) -> float:
    """About so many seconds: less or more by that share of them, as the random `chance` from 0 to 1 says.

    Processes that failed, or fell asleep, together do not come back together.
    """
    return seconds * between(1 - spread, 1 + spread, chance)


@dataclass(frozen=True, slots=True)
class BackoffPolicy:
    """Pauses in seconds from `first` on, each twice the one before, up to `longest`; `spread` as of `jittered`."""

    first: float
    longest: float
    spread: float = 0.0

    def pause(self, failures: int, chance: float = 0.5) -> float:
        """The pause after so many earlier failures in a row, with jitter by the random `chance` from 0 to 1."""
        plain = min(self.first * 2.0 ** min(failures, MOST_DOUBLINGS), self.longest)
        return jittered(plain, self.spread, chance)

    def after(self, pause: float) -> float:
        """The pause, without jitter, that follows this one, where the bounds may have changed meanwhile."""
        return min(pause * 2, self.longest)
