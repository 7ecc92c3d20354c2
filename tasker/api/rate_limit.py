"""No client takes more than its share of a server: so many requests a second on average, and so many at once."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from tasker.errors import TooManyRequests

MOST_CLIENTS = 10_000
"""So many clients are known at a time; beyond that the one that was heard of longest ago starts afresh."""


class RateLimit:
    """`per_second` requests of each client on average, `burst` at once. It counts in this process alone."""

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = monotonic) -> None:
        self._interval, self._clock = 1 / per_second, clock
        self._ahead = self._interval * (burst - 1)
        self._due: dict[str, float] = {}
        """When the next request of a client would be on time."""

    def spend(self, client: str) -> None:
        """One more request. Raises `TooManyRequests` for one too many, which does not count."""
        now = self._clock()
        due = max(now, self._due.pop(client, now))
        if (early := due - now - self._ahead) > 0:
            self._due[client] = due
            raise TooManyRequests("too many requests of this client", retry_after=early)
        self._due[client] = due + self._interval
        if len(self._due) > MOST_CLIENTS:
            self._forget(now)

    def _forget(self, now: float) -> None:
        """Those that are on time again; where all are busy the one heard of longest ago."""
        busy = {client: due for client, due in self._due.items() if due > now}
        if len(busy) > MOST_CLIENTS:
            del busy[next(iter(busy))]
        self._due = busy
