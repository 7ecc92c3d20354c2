"""Bounded exponential backoff with jitter."""

from __future__ import annotations

from tasker.contracts.dataclasses import dataclass

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
