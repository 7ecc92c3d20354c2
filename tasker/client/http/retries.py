"""When a request is sent again."""

from __future__ import annotations

from tasker.contracts.backoff import BackoffPolicy
from tasker.contracts.dataclasses import dataclass

SPREAD = 0.2


@dataclass(frozen=True, slots=True)
class Retries:
    """A request that may be repeated is sent up to `attempts` times, with pauses in seconds that double.

    A server that says when to come back is obeyed, unless that is longer than `patience_seconds`: then the error is
    raised at once.
    """

    attempts: int = 4
    first_seconds: float = 0.2
    longest_seconds: float = 5.0
    patience_seconds: float = 30.0

    def pause(self, failures: int, asked_for: float | None, chance: float) -> float | None:
        """Seconds until the next attempt after so many failures; None: there is none. `chance` from 0 to 1 spreads it.

        `asked_for` is what the server said.
        """
        if failures >= self.attempts or (asked_for or 0.0) > self.patience_seconds:
            return None
        own = BackoffPolicy(self.first_seconds, self.longest_seconds, SPREAD).pause(failures - 1, chance)
        return max(own, asked_for or 0.0)


NEVER = Retries(attempts=1)
