"""Rate limit of each client: an average number of requests per second and a number at once."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from tasker.errors import TooManyRequests

MOST_CLIENTS = 10_000
"""Maximum number of clients tracked; beyond it the client whose last request is oldest starts afresh."""


class RateLimit:
    """Rate limit of `per_second` requests per client on average and `burst` at once, counted in this process alone."""

    def __init__(self, per_second: float, burst: int, clock: Callable[[], float] = monotonic) -> None:
        self._interval, self._clock = 1 / per_second, clock
        self._ahead = self._interval * (burst - 1)
        self._due: dict[str, float] = {}
        """Time at which the next request of a client would be on time."""

    def spend(self, client: str) -> None:
        """Count one request. Raises `TooManyRequests` for a request over the limit, which is not counted."""
        now = self._clock()
        due = max(now, self._due.pop(client, now))
        if (early := due - now - self._ahead) > 0:
            self._due[client] = due
            raise TooManyRequests("too many requests of this client", retry_after=early)
        self._due[client] = due + self._interval
        if len(self._due) > MOST_CLIENTS:
            self._forget(now)

    def _forget(self, now: float) -> None:
        """Drop clients that are on time again, or, if all are busy, the one whose last request is oldest."""
        busy = {client: due for client, due in self._due.items() if due > now}
        if len(busy) > MOST_CLIENTS:
            del busy[next(iter(busy))]
        self._due = busy
