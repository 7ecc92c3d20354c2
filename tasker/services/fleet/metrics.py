"""Metrics of a server's `/metrics`: the fleet, read from the database, and this process."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import field
from typing import Any

from tasker.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.errors import TaskerError
from tasker.metrics import Histogram
from tasker.resilience.breaker import BreakerReading, BreakerState
from tasker.services.fleet.health import ServerHealth
from tasker.services.fleet.metric_catalogue import CATALOGUE as CATALOGUE  # re-exported with the values
from tasker.services.fleet.metric_catalogue import Sample, exposition, families
from tasker.services.fleet.overview import FleetOverview
from tasker.services.fleet.scaling import scaling
from tasker.services.submission.limits import SubmissionLimits
from tasker.version import __version__
from tasker.views.analytics import ScalingAdvice
from tasker.views.overview import Overview

FRESH_SECONDS = 5.0
"""Time for which values of the fleet are cached, so that frequent scrapes do not burden the database."""
HOURS = (1, 4, 8, 24, 72, 168, 720)
"""Upper bounds of the buckets in which tasker.count_dead_letters counts waits, in hours."""
BREAKER_STATES = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}
SHOWN = {"missing": "none", "malformed": "none", "not_taken": "none", "unknown_key": "api_key"}
"""Kind of the presented credentials, by reason of the refusal; for all other reasons it is a token."""
CHECK_BOUNDS_MS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 500, 1000, 5000)
"""Upper bounds of the buckets for token checks, in milliseconds."""


def _verification() -> Histogram:
    name = "tasker_auth_jwt_verification_duration_milliseconds"
    described = CATALOGUE[name]
    return Histogram(name, described.meaning, CHECK_BOUNDS_MS, described.labels)


@dataclass(slots=True)
class AccessCounts:
    """Counts of authentications and permission checks of this process."""

    requests: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Requests by method (`disabled`, `jwt`, `api_key`, `none`) and result (`success`, `failure`)."""
    denials: Counter[str] = field(default_factory=Counter)
    """Denied requests by permission."""
    failures: Counter[str] = field(default_factory=Counter)
    """Failures by the reason of `NotAuthenticated`."""
    verification: Histogram = field(default_factory=_verification)
    """Durations of token checks."""

    def known(self, method: str, duration_ms: float) -> None:
        """Record that a caller was authenticated by this method."""
        self._count(method, "success", duration_ms)

    def refused(self, reason: str, duration_ms: float) -> None:
        """Record that a caller's authentication failed."""
        self.failures[reason] += 1
        self._count(SHOWN.get(reason, "jwt"), "failure", duration_ms)

    def _count(self, method: str, result: str, duration_ms: float) -> None:
        self.requests[method, result] += 1
        if method == "jwt":
            self.verification.observe(duration_ms, result=result)

    def samples(self) -> Iterator[Sample]:
        """Yield the counts as samples."""
        for (method, result), number in self.requests.items():
            yield Sample("tasker_auth_requests_total", number, {"method": method, "result": result})
        for reason, number in self.failures.items():
            yield Sample("tasker_auth_failures_total", number, {"reason": reason})
        for permission, number in self.denials.items():
            yield Sample("tasker_permission_denials_total", number, {"permission": permission})


def breaker_samples(readings: Iterable[BreakerReading]) -> Iterator[Sample]:
    """Yield the state of each breaker and the number of calls it refused."""
    for reading in readings:
        named = {"component": reading.name}
        yield Sample("tasker_circuit_breaker_state", BREAKER_STATES[reading.state], named)
        yield Sample("tasker_circuit_breaker_rejections_total", reading.counts.refused, named)


class ServerMetrics:
    """Metrics of the server; those of the fleet are read at most every five seconds."""

    def __init__(
        self, fleet: FleetOverview, connection: Statements, health: ServerHealth, limits: SubmissionLimits
    ) -> None:
        self._fleet, self._connection, self._health, self._limits = fleet, connection, health, limits
        self.access = AccessCounts()
        self._found: tuple[float, str] | None = None
        self._reading = asyncio.Lock()

    async def text(self, breakers: Iterable[BreakerReading]) -> str:
        """Return all metrics of the catalogue known now, with the state of these breakers. Raises nothing."""
        process_metrics = exposition(CATALOGUE, [*self._of_process(), *breaker_samples(breakers)]) + families(
            [self.access.verification, self._health.waits]
        )
        return process_metrics + await self._of_fleet()

    def _of_process(self) -> Iterator[Sample]:
        pool = self._health.pool
        yield Sample("tasker_info", 1, {"version": __version__})
        states = {"active": pool["lent"], "idle": pool["made"] - pool["lent"], "max": pool["max"]}
        for state, number in states.items():
            yield Sample("tasker_db_pool_connections", number, {"pool": "tasker", "state": state})
        yield Sample("tasker_db_pool_connections_active", states["active"])
        yield Sample("tasker_db_pool_connections_idle", states["idle"])
        yield Sample("tasker_database_pool_active", states["active"])
        yield Sample("tasker_database_pool_max", states["max"])
        yield Sample("tasker_db_pool_waiting", pool["waiting"])
        yield Sample("tasker_db_pool_acquires_total", pool["acquires"])
        yield Sample("tasker_db_pool_slow_acquires_total", pool["slow_acquires"])
        yield Sample("tasker_db_pool_acquire_errors_total", pool["exhausted"])
        yield from self.access.samples()
        for tenant, number in self._limits.admitted.items():
            yield Sample("tasker_tenant_submissions_total", number, {"tenant": tenant})
        for (reason, tenant), number in self._limits.refused.items():
            yield Sample("tasker_submissions_refused_total", number, {"reason": reason, "tenant": tenant})
        yield Sample("api_circuit_breaker_state", BREAKER_STATES[BreakerState(self._health.breaker_state)])

    async def _of_fleet(self) -> str:
        async with self._reading:
            if self._found is None or time.monotonic() - self._found[0] > FRESH_SECONDS:
                self._found = (time.monotonic(), await self._read())
            return self._found[1]

    async def _read(self) -> str:
        try:
            overview = await self._fleet.overview(window_seconds=0)
            advised = await scaling(self._connection)
            counted = await self._connection.execute(query("fleet", "counted"))
            dead_letters = await self._connection.execute(query("fleet", "dead_letters"))
        except TaskerError:
            return exposition(CATALOGUE, [Sample("tasker_database_up", 0)])
        named = [Sample(name, number, {label: value} if label else {}) for name, label, value, number in counted]
        named += [Sample("tasker_workers_recommended", *_recommended(advice)) for advice in advised]
        created = next((number for what, number, _ in dead_letters if what == "created"), 0)
        named += [Sample("tasker_database_up", 1), Sample("tasker_dlq_entries_created_total", created)]
        named += _processes(overview)
        text = exposition(CATALOGUE, [*named, *_overall(overview), *_queues(overview, self._health.critical_depth)])
        return text + families([_waits(dead_letters)])


def _waits(rows: Sequence[Sequence[Any]]) -> Histogram:
    """Return the histogram of dead letters' waits from rows (upper bound in hours, count, total hours)."""
    name = "tasker_dlq_time_in_queue_hours"
    made = Histogram(name, CATALOGUE[name].meaning, HOURS)
    waits = {what: (number, hours) for what, number, hours in rows if what != "created"}
    counts = [waits.get(end, (0, 0))[0] for end in (*map(str, HOURS), "+Inf")]
    made.set(counts, sum(hours for _, hours in waits.values()))
    return made


def _recommended(advice: ScalingAdvice) -> tuple[int, dict[str, str]]:
    return advice.recommended_workers, {"namespace": advice.namespace}


def _overall(overview: Overview) -> Iterator[Sample]:
    yield Sample("tasker_tasks_submitted_last_minute", overview.submitted)
    yield Sample("tasker_step_failures_last_minute", overview.failed_attempts)
    yield Sample("tasker_pauses", overview.pauses)
    yield Sample("tasker_dlq_pending_investigations", overview.dead_letters)
    for breaker in overview.breakers:
        yield Sample("tasker_steps_held_by_breaker", breaker.steps, {"breaker": breaker.breaker})


def _queues(overview: Overview, most: int) -> Iterator[Sample]:
    for queue in overview.queues:
        labels, named = {"namespace": queue.namespace}, {"queue_name": f"worker_{queue.namespace}_queue"}
        yield Sample("pgmq_queue_depth", queue.enqueued, named)
        yield Sample("pgmq_queue_max_depth", most, named)
        yield Sample("tasker_queue_depth", queue.enqueued, labels)
        yield Sample("tasker_steps_ready", queue.held, labels)
        yield Sample("tasker_steps_paused", queue.paused, labels)
        yield Sample("tasker_steps_taken_total", queue.taken, labels)


def _processes(overview: Overview) -> Iterator[Sample]:
    for (kind, state), number in Counter((process.kind, process.state) for process in overview.processes).items():
        yield Sample("tasker_workers", number, {"kind": kind, "state": state})
    live = [process for process in overview.processes if process.kind == "worker" and process.state == "live"]
    yield Sample("tasker_workers_active", len(live))
    yield Sample("tasker_worker_slots", sum(process.slots for process in live))
    yield Sample("tasker_worker_steps", sum(process.in_hand for process in live))
