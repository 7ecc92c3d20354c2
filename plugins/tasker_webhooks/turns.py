"""Limits of requests: the number at a time, the order of one task's events, and a breaker for failing endpoints."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from tasker.clock import BackoffPolicy


class Breaker:
    """Circuit breaker of an endpoint: one request after each rest, until one is accepted."""

    failures_in_a_row = 5
    rest = BackoffPolicy(30.0, 600.0, spread=0.2)

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures, self._open_until = 0, 0.0
        self._asking = asyncio.Lock()

    @property
    def seconds(self) -> float:
        """Time in seconds for which nothing is to be sent."""
        return max(0.0, self._open_until - self._clock())

    @property
    def is_open(self) -> bool:
        """True if the last requests failed: the endpoint rests, or one request probes it."""
        return self._failures >= self.failures_in_a_row

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """Wait for the turn of one request, which reports its outcome. An open breaker grants one at a time, after its
        rest."""
        if self.is_open:
            async with self._asking:
                while self.seconds:
                    await asyncio.sleep(self.seconds)
                if self.is_open:
                    yield
                    return
        yield

    def succeeded(self) -> None:
        """Record an accepted request."""
        self._failures, self._open_until = 0, 0.0

    def failed(self) -> bool:
        """Record a failed request; return True if it opened the breaker. Requests in progress do not count then."""
        if self.seconds:
            return False
        self._failures += 1
        beyond = self._failures - self.failures_in_a_row
        if beyond >= 0:
            self._open_until = self._clock() + self.rest.pause(beyond, random.random())
        return beyond == 0


class Turns:
    """Limit of concurrent requests; those with the same key run one by one, in their order."""

    def __init__(self, at_once: int) -> None:
        self._slots = asyncio.Semaphore(at_once)
        self._keys = WeakValueDictionary[str, asyncio.Lock]()

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncGenerator[None]:
        """Wait for a turn. Requests that wait for their key occupy no slot."""
        lock = self._keys.setdefault(key, asyncio.Lock())
        async with lock, self._slots:
            yield
