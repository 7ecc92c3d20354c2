"""Who may be posted to when: so many at a time, one task's events one by one, and nobody who fails again and again."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from weakref import WeakValueDictionary

from tasker.contracts.backoff import BackoffPolicy


class Breaker:
    """Lets an endpoint that fails again and again rest: one request after each rest, until one is taken."""

    failures_in_a_row = 5
    rest = BackoffPolicy(30.0, 600.0, spread=0.2)

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._failures, self._open_until = 0, 0.0
        self._asking = asyncio.Lock()

    @property
    def seconds(self) -> float:
        """How long nothing is to be sent."""
        return max(0.0, self._open_until - self._clock())

    @property
    def is_open(self) -> bool:
        """The last requests were not taken: there is a rest, or one request that asks."""
        return self._failures >= self.failures_in_a_row

    @asynccontextmanager
    async def turn(self) -> AsyncGenerator[None]:
        """For one request, which tells what came of it. While it is open one at a time gets a turn, after its rest."""
        if self.is_open:
            async with self._asking:
                while self.seconds:
                    await asyncio.sleep(self.seconds)
                if self.is_open:
                    yield
                    return
        yield

    def succeeded(self) -> None:
        """A request was taken."""
        self._failures, self._open_until = 0, 0.0

    def failed(self) -> bool:
        """A request was not taken. True when that opened it; those that were under way then count no more."""
        if self.seconds:
            return False
        self._failures += 1
        beyond = self._failures - self.failures_in_a_row
        if beyond >= 0:
            self._open_until = self._clock() + self.rest.pause(beyond, random.random())
        return beyond == 0


class Turns:
    """At most so many at a time; of those with the same key one, in the order in which they came."""

    def __init__(self, at_once: int) -> None:
        self._slots = asyncio.Semaphore(at_once)
        self._keys = WeakValueDictionary[str, asyncio.Lock]()

    @asynccontextmanager
    async def turn(self, key: str) -> AsyncGenerator[None]:
        """Waits for it. Those that wait for their key keep nobody else from a turn."""
        lock = self._keys.setdefault(key, asyncio.Lock())
        async with lock, self._slots:
            yield
