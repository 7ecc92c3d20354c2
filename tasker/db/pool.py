"""Connections opened on demand, up to a limit; slow waits are logged."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from tasker.db.connection import Connection, Statements
from tasker.db.pace import BACKOFF
from tasker.db.session import Params, Rows
from tasker.errors import DatabaseError, PoolExhausted, SessionRefused, UsageError
from tasker.logging.lines import LogThrottle
from tasker.metrics import Histogram, summed
from tasker.settings.database import PoolTable


def require_loop(own: asyncio.AbstractEventLoop) -> None:
    """Raise `UsageError` if the running event loop is not `own`."""
    if asyncio.get_running_loop() is not own:
        raise UsageError(
            "this call comes from another event loop than the one in which the app was started",
            hint="await it there (asyncio.run_coroutine_threadsafe), or use tasker.SyncApp, which serves every thread",
        )


_log = logging.getLogger("tasker.database")


class SlowWaits:
    """Logger of the first slow wait at once, and of others with the first of the next period or at the end."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._seldom, self._longest = LogThrottle(monotonic), 0.0

    def note(self, seconds: float, sizes: Callable[[], dict[str, int]]) -> None:
        """Record a wait of `seconds`; `sizes` returns the sizes of the pool."""
        self._longest = max(self._longest, seconds)
        if self._seldom.hit():
            self.log_waits(sizes)

    def log_waits(self, sizes: Callable[[], dict[str, int]]) -> None:
        """Log one line for the waits not logged yet."""
        if count := self._seldom.flush():
            _log.warning("pool_slow_acquire count=%d longest_ms=%.0f %s", count, self._longest * 1000, sizes())
        self._longest = 0.0


WAIT_BOUNDS_MS = (1, 5, 10, 25, 50, 100, 200, 500, 1000, 5000, 10_000)
"""Upper bounds of the wait-time buckets, in milliseconds."""
C = TypeVar("C", bound=Connection)
T = TypeVar("T")


class PoolClosed(UsageError, DatabaseError):
    """Error raised if the pool was closed while a call was under way; its statement was not sent."""


class Pool(Statements, Generic[C]):
    """Pool that runs each statement on a free connection, of at most `max_connections`.

    A connection is lent for one statement, or for a transaction whose statements all go to it (`GuardedConnection`): so
    no caller ever asks for a second one while holding one, and a pool of a single connection is slow, and never stuck.
    One that the server has ended while it was idle is opened again before it is lent. `make` makes one, which
    opens by itself.

    While the server refuses further sessions, the pool is limited to the open connections: callers wait for these, and
    one of them tries to open another with growing pauses.
    """

    def __init__(self, make: Callable[[], C], settings: PoolTable | None = None) -> None:
        self._make, self.settings = make, settings or PoolTable()
        self._free = asyncio.Semaphore(self.settings.max_connections)
        self._idle: list[tuple[float, C]] = []
        """Idle connections, each with the time it became idle; the last one used is lent next."""
        self._all: set[C] = set()
        self._waiting = 0
        self._closing: set[asyncio.Task[None]] = set()
        self._refused = 0
        """Permits of `_free` withheld because the server refused their sessions."""
        self._refusal: SessionRefused | None = None
        self._refusals = 0
        """Number of consecutive refusals."""
        self._grow_at = 0.0
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._slow = SlowWaits()
        self.counts: Counter[str] = Counter()
        """`acquires`, `slow_acquires`, `exhausted` and `answered` since the start."""
        self._waits = Histogram(
            "tasker_db_pool_wait_duration_milliseconds", "A wait for a connection of this process.", WAIT_BOUNDS_MS
        )
        self.longest_wait_ms = 0.0
        """Longest wait for a connection since the start, whether the caller got one or not."""

    async def execute(self, statement: str, params: Params = None) -> Rows:
        """As `Statements.execute`. Raises `PoolExhausted` when no connection became free in time, and
        `PoolClosed`."""
        return await self.lend(lambda connection: connection.execute(statement, params))

    async def lend(self, use: Callable[[C], Awaitable[T]]) -> T:
        """Call `use` with a free connection and return its result.

        Raises the errors of `execute`, and `UsageError` if another event loop made the first call, because the
        connections belong to that loop. If the server refuses to open the connection, `use` is called again with
        another one.
        """
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
        require_loop(self._loop)
        deadline = time.monotonic() + self.settings.acquire_timeout_seconds
        while True:
            is_trial = await self._acquire(deadline)
            if self._closed:
                self._free.release()
                raise _stopped_error()
            connection, stays = self._take(), True
            try:
                if connection.ended or connection.age > self.settings.max_lifetime_seconds:
                    await connection.close()
                answer = await use(connection)
                self.counts["answered"] += 1
                if is_trial:
                    self._refusals, self._grow_at = 0, 0.0
                return answer
            except SessionRefused as error:
                stays = not self._shrink(connection, error)
                if stays:
                    raise
            finally:
                if stays:
                    await self._take_back(connection)

    async def _take_back(self, connection: C) -> None:
        if connection in self._all:
            self._idle.append((time.monotonic(), connection))
            self._watch_idle()
        else:  # the pool was closed meanwhile
            await connection.close()
        self._free.release()

    def _take(self) -> C:
        """Return the most recently used open connection, or else one that is opened on use."""
        for index in reversed(range(len(self._idle))):
            if self._idle[index][1].is_open:
                return self._idle.pop(index)[1]
        return self._idle.pop()[1] if self._idle else self._new()

    def _shrink(self, connection: C, error: SessionRefused) -> bool:
        """Remove a connection that the server refuses, and its permit; return False if there is no other connection."""
        has_others = len(self._all) - len(self._idle) > 1 or any(idle.is_open for _, idle in self._idle)
        if not has_others:
            return False
        self._all.discard(connection)
        self._refused += 1
        self._refusal = error
        if (now := time.monotonic()) >= self._grow_at:
            self._pause_growth(now)
        return True

    def _pause_growth(self, now: float) -> None:
        self._grow_at = now + BACKOFF.pause(self._refusals, random.random())
        self._refusals += 1

    def sizes(self) -> dict[str, int]:
        """Return the maximum and current number of connections, the number lent, and the number of waiting callers."""
        lent = len(self._all) - len(self._idle)
        return {"max": self.settings.max_connections, "made": len(self._all), "lent": lent, "waiting": self._waiting}

    def waits(self) -> Histogram:
        """Return the distribution of callers' waits for a connection; most are zero."""
        waited = sum(self._waits.counted()[0])
        return summed(self._waits, zeros=self.counts["acquires"] - self._waiting - waited)

    async def close(self) -> None:
        """Close the pool permanently; lent connections are closed when they are returned."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._slow.log_waits(self.sizes)
        idle, self._idle = self._idle, []
        self._all.clear()
        await asyncio.gather(*(connection.close() for _, connection in idle), *self._closing)

    async def _acquire(self, deadline: float) -> bool:
        """Wait for a permit; return True for one whose session the server refused before."""
        self.counts["acquires"] += 1
        if not self._free.locked():
            await self._free.acquire()
            return False
        started = time.monotonic()
        if self._refused and started >= self._grow_at:
            self._refused -= 1
            self._pause_growth(started)
            return True
        self._waiting += 1
        try:
            async with asyncio.timeout(deadline - started):
                await self._free.acquire()
        except TimeoutError:
            raise self._exhausted() from None
        finally:
            self._waiting -= 1
            self._waited((time.monotonic() - started) * 1000)
        if (waited := time.monotonic() - started) > self.settings.slow_acquire_threshold_ms / 1000:
            self.counts["slow_acquires"] += 1
            self._slow.note(waited, self.sizes)
        return False

    def _waited(self, ms: float) -> None:
        self._waits.observe(ms)
        self.longest_wait_ms = max(self.longest_wait_ms, ms)

    def _exhausted(self) -> PoolExhausted:
        self.counts["exhausted"] += 1
        sizes, refusal = self.sizes(), self._refusal if self._refused else None
        return PoolExhausted(
            f"no database connection became free within {self.settings.acquire_timeout_seconds:g} s: "
            f"{sizes['lent']} of {sizes['max']} are in use, {sizes['waiting']} callers wait"
            + (f"; {refusal.message}" if refusal else ""),
            metadata=sizes,
            retry_after=self.settings.acquire_timeout_seconds,
            hint=(refusal and refusal.hint)
            or "ask for less at the same time, or raise common.database.pool.max_connections while the server's "
            "max_connections allows it; slow statements hold connections: see pg_stat_activity",
        )

    def _new(self) -> C:
        connection = self._make()
        self._all.add(connection)
        return connection

    def _watch_idle(self) -> None:
        """Schedule the next check for when the connection that has been idle longest may be closed."""
        if self._timer is None and len(self._all) > self.settings.min_connections:
            wait = self._idle[0][0] + self.settings.idle_timeout_seconds - time.monotonic()
            self._timer = asyncio.get_running_loop().call_later(max(0.0, wait), self._close_idle)

    def _close_idle(self) -> None:
        self._timer = None
        limit = time.monotonic() - self.settings.idle_timeout_seconds
        while self._idle and len(self._all) > self.settings.min_connections and self._idle[0][0] <= limit:
            _, connection = self._idle.pop(0)
            self._all.discard(connection)
            task = asyncio.get_running_loop().create_task(connection.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)
        if self._idle:
            self._watch_idle()


def _stopped_error() -> PoolClosed:
    return PoolClosed(
        "the app was stopped while this was under way",
        hint="stop it when those who use it have ended; what was sent to the database before may have been done",
    )
