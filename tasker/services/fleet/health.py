"""Health of a process's dependencies: database, messaging, pool capacity, and running workers."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace

from tasker.dataclasses import dataclass
from tasker.engine.calls import Engine
from tasker.engine.guarded_connection import GuardedConnection
from tasker.errors import PoolExhausted, TaskerError
from tasker.metrics import Histogram
from tasker.resilience.breaker import BreakerState, GuardedCircuit
from tasker.resilience.pressure import Level, depth_level
from tasker.services.fleet.brokers import live_processes, namespaces
from tasker.settings.queues import DepthThresholds

HEALTHY, DEGRADED, UNHEALTHY = "healthy", "degraded", "unhealthy"
FRESH_SECONDS = 1.0
"""Time for which results are cached, so that frequent checks do not burden a failing component."""
PROBE_SECONDS = 3.0
"""Time limit of a check, so that a component that hangs is reported as fast as one that is down."""
NO_ANSWER, BUSY = "no answer", "busy: no connection became free"
NO_CONNECTION = (NO_ANSWER, PoolExhausted.error_type)
"""Messages of a check that got no connection: the database hangs, or answers others while the check waits."""
Answer = tuple[str, str | None]


@dataclass(frozen=True, slots=True)
class Check:
    """Result of a check. `message` is the problem or a summary, never a text from the database."""

    status: str
    message: str | None
    duration_ms: int


class ServerHealth:
    """Health checks, run at most once a second. `limits` are the queue depths that count as too deep."""

    def __init__(
        self, engine: Engine, connection: GuardedConnection, breaker: GuardedCircuit, limits: DepthThresholds
    ) -> None:
        self._engine, self._connection, self._breaker, self._limits = engine, connection, breaker, limits
        self._found: tuple[float, Mapping[str, Check]] | None = None
        self._looking = asyncio.Lock()

    @property
    def breaker_state(self) -> str:
        """State of the circuit breaker of the database."""
        return str(self._breaker.state)

    @property
    def pool(self) -> Mapping[str, int]:
        """Sizes of the pool, as in `Pool.sizes`, and its counts."""
        pool = self._connection.pool
        return {**pool.sizes(), **{name: pool.counts[name] for name in ("acquires", "slow_acquires", "exhausted")}}

    @property
    def waits(self) -> Histogram:
        """Distribution of callers' waits for a connection."""
        return self._connection.pool.waits()

    @property
    def longest_wait_ms(self) -> float:
        """Longest of these waits."""
        return self._connection.pool.longest_wait_ms

    @property
    def critical_depth(self) -> int:
        """Number of ready steps of a namespace from which new tasks are refused."""
        return self._limits.critical_threshold

    async def checks(self) -> Mapping[str, Check]:
        """Return the checks `database`, `messaging`, `breaker`, `pool`, `queues` and `fleet`. Raises nothing."""
        async with self._looking:
            if self._found is None or time.monotonic() - self._found[0] > FRESH_SECONDS:
                probes = {
                    "pool": self._room,  # first, because the others take connections
                    "breaker": self._circuit,
                    "database": self._database,
                    "messaging": self._messaging,
                    "queues": self._queues,
                    "fleet": self._fleet,
                }
                counts = self._connection.pool.counts
                answered = counts["answered"]
                checks = dict(zip(probes, await asyncio.gather(*map(_timed, probes.values())), strict=True))
                if checks["database"].message in NO_CONNECTION and counts["answered"] > answered:
                    checks["database"] = replace(checks["database"], status=DEGRADED, message=BUSY)
                self._found = (time.monotonic(), checks)
            return self._found[1]

    async def _database(self) -> Answer:
        await self._connection.execute("select tasker.now()")
        return HEALTHY, None

    async def _messaging(self) -> Answer:
        if await self._engine.messaging.health_check():
            return HEALTHY, self._engine.messaging.provider_name()
        return UNHEALTHY, f"{self._engine.messaging.provider_name()} does not answer"

    async def _circuit(self) -> Answer:
        state = self._breaker.state
        return {BreakerState.OPEN: UNHEALTHY, BreakerState.HALF_OPEN: DEGRADED}.get(state, HEALTHY), str(state)

    async def _room(self) -> Answer:
        pool = self.pool
        text = f"{pool['lent']} of {pool['max']} connections in use, {pool['waiting']} callers wait"
        return DEGRADED if pool["waiting"] else HEALTHY, text

    async def _queues(self) -> Answer:
        waiting = await namespaces(self._connection)
        full = [name for name, enqueued in waiting if depth_level(self._limits, enqueued) is not Level.NORMAL]
        text = f"{sum(enqueued for _, enqueued in waiting)} steps enqueued"
        return (DEGRADED, f"{text}; deep: {', '.join(full)}") if full else (HEALTHY, text)

    async def _fleet(self) -> Answer:
        processes = await live_processes(self._connection)
        workers = sum(process.kind == "worker" for process in processes)
        text = f"{workers} workers and {len(processes) - workers} orchestrators at work"
        return HEALTHY if workers else DEGRADED, text if workers else f"{text}: no step runs"


async def _timed(probe: Callable[[], Awaitable[Answer]]) -> Check:
    began = time.monotonic()
    looking = asyncio.ensure_future(_answer(probe))
    try:
        await asyncio.wait([looking], timeout=PROBE_SECONDS)
        status, message = looking.result() if looking.done() else (UNHEALTHY, NO_ANSWER)
    finally:
        looking.cancel()  # not awaited: ending a statement takes as long as the server needs
    return Check(status, message, round((time.monotonic() - began) * 1000))


async def _answer(probe: Callable[[], Awaitable[Answer]]) -> Answer:
    try:
        return await probe()
    except TaskerError as error:
        return UNHEALTHY, error.error_type
