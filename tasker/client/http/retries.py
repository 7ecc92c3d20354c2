"""Retry policy of HTTP requests."""

from __future__ import annotations

from tasker.contracts.backoff import BackoffPolicy
from tasker.contracts.dataclasses import dataclass

SPREAD = 0.2


@dataclass(frozen=True, slots=True)
class Retries:
    """Retry policy: a repeatable request is sent up to `attempts` times, with a pause in seconds that doubles.

    A `Retry-After` of the server is respected, unless it is longer than `patience_seconds`: then the error is raised at
    once.
    """

    attempts: int = 4
    first_seconds: float = 0.2
    longest_seconds: float = 5.0
    patience_seconds: float = 30.0

    def pause(self, failures: int, asked_for: float | None, chance: float) -> float | None:
        """Return the seconds until the next attempt after `failures` failures, or None to stop.

        `chance` from 0 to 1 is the jitter; `asked_for` is the server's `Retry-After` in seconds.
        """
        if failures >= self.attempts or (asked_for or 0.0) > self.patience_seconds:
            return None
        own = BackoffPolicy(self.first_seconds, self.longest_seconds, SPREAD).pause(failures - 1, chance)
        return max(own, asked_for or 0.0)


NEVER = Retries(attempts=1)
