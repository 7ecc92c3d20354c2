"""Current state of the fleet: queues, processes, breakers, templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from tasker.contracts.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.db.queries import query
from tasker.errors import UsageError
from tasker.errors.remedies import see
from tasker.services.fleet.activity import Activity, activity
from tasker.services.progress import ReportedProgress

TASKS_READ = 2000
"""Number of the newest tasks of the window that durations of templates are computed from."""
WAITS_READ = 1000
"""Number of steps whose time in the queue is read."""


@dataclass(frozen=True, slots=True)
class Queue:
    """Ready steps of a namespace: `enqueued`, `held` because the queue is full, and `paused`.

    `taken` is the total number of steps that left the queue; `processes` is the number of live workers that serve it.
    """

    namespace: str
    enqueued: int
    held: int
    paused: int
    taken: int
    processes: int


@dataclass(frozen=True, slots=True)
class Process:
    """Worker or orchestrator: `live`, `draining` or `lost`.

    `in_hand` of its `slots` were in use at its last heartbeat.
    """

    worker: str
    name: str
    kind: str
    host: str
    pid: int
    state: str
    namespaces: Sequence[str]
    slots: int
    in_hand: int
    asleep: bool
    beat_age_ms: int


@dataclass(frozen=True, slots=True)
class OpenBreaker:
    """Circuit breaker that defers `steps` steps, the last of them `until` that time."""

    breaker: str
    steps: int
    until: datetime


@dataclass(frozen=True, slots=True)
class TemplatePace:
    """Tasks of a template in the window. Durations are milliseconds from submission to end; None if none has ended."""

    namespace: str
    template: str
    tasks: int
    running: int
    failed: int
    mean_ms: int | None
    p95_ms: int | None


@dataclass(frozen=True, slots=True)
class RunningStep(ReportedProgress):
    """Step whose handler reports progress."""

    task: str
    step: str
    template: str


@dataclass(frozen=True, slots=True)
class Overview:
    """State of the fleet at the moment `at`. `submitted` and `failed_attempts` are counts of the last minute.

    Of `open` tasks, and of `dead_letters` that wait for somebody, at most 100,000 are counted. There are so many
    `namespaces`, of which `unworked` have waiting steps and no live worker; `unworked_queues` are the five fullest of
    these.
    """

    at: datetime
    queues: Sequence[Queue]
    processes: Sequence[Process]
    breakers: Sequence[OpenBreaker]
    templates: Sequence[TemplatePace]
    running: Sequence[RunningStep]
    pauses: int
    open: int
    dead_letters: int
    submitted: int
    failed_attempts: int
    namespaces: int = 0
    unworked: int = 0
    unworked_queues: Sequence[Queue] = ()

    def taken_per_second(self, before: Overview | None) -> dict[str, float]:
        """Return the rate of steps that left the queue since `before`, by namespace; empty if `before` is None."""
        seconds = (self.at - before.at).total_seconds() if before else 0.0
        if before is None or seconds <= 0:
            return {}
        earlier = {queue.namespace: queue.taken for queue in before.queues}
        return {
            queue.namespace: max(0, queue.taken - earlier.get(queue.namespace, queue.taken)) / seconds
            for queue in self.queues
        }

    def to_dict(self) -> dict[str, Any]:
        """Return the overview as a mapping of plain values (`tasker top --format json`)."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class Backlog:
    """Ready steps of one priority outside of the queue: `held` because it is full, `paused` by a pause."""

    namespace: str
    priority: int
    held: int
    paused: int


@dataclass(frozen=True, slots=True)
class InFlightStep:
    """Step that a process runs."""

    task: str
    step: str
    template: str
    attempt: int
    started_at: datetime | None
    deadline_at: datetime | None


class FleetOverview:
    """Queries of the state of the fleet. They raise `DatabaseError`."""

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def overview(
        self,
        *,
        window_seconds: float = 3600.0,
        queues: int | None = None,
        offset: int = 0,
        namespaces: Sequence[str] | None = None,
        templates: int | None = None,
    ) -> Overview:
        """Return how it does now; templates by the newest 2,000 tasks that were submitted within the window.

        `queues` is how many queues are wanted behind the `offset` fullest, None all of them; with `namespaces` only the
        queues of these. `templates` is how many of the slowest templates are wanted.
        """
        args: dict[str, Any] = {
            "window_seconds": window_seconds,
            "tasks": TASKS_READ,
            "queues": queues,
            "offset": offset,
        }
        args["templates"] = templates
        args |= {} if namespaces is None else {"namespaces": list(namespaces)}
        return overview(await self._connection.call("tasker.overview_v1(%s::jsonb)", args))

    async def backlog(self, namespaces: Sequence[str] | None = None) -> list[Backlog]:
        """Return what waits outside of the queues, by namespace and priority; of at most 20,000 steps."""
        params = {"namespaces": None if namespaces is None else list(namespaces)}
        return [Backlog(*row) for row in await self._connection.execute(query("fleet", "backlog"), params)]

    async def in_flight(self, worker: str) -> list[InFlightStep]:
        """Return at most 200 steps that a process runs. Raises `UsageError` for an invalid identifier."""
        try:
            params = {"worker": str(UUID(worker))}
        except ValueError:
            raise UsageError(f"{worker!r:.60} is not a process's identifier", hint=see("tasker worker list")) from None
        return [InFlightStep(*row) for row in await self._connection.execute(query("fleet", "in_hand"), params)]

    async def activity(
        self,
        *,
        seconds: float = 3600.0,
        slices: int = 30,
        tasks: int = 10_000,
        namespaces: int | None = None,
        offset: int = 0,
    ) -> Activity:
        """Return what has happened within the last `seconds`, of the newest `tasks` alone.

        The span is shorter if these tasks reach less far.
        `namespaces` is how many are wanted, or all: those in which something happens first, behind the first `offset`.
        """
        args = {"seconds": seconds, "slices": slices, "tasks": tasks, "namespaces": namespaces, "offset": offset}
        args["steps"] = WAITS_READ
        return activity(await self._connection.call("tasker.activity_v1(%s::jsonb)", args))


def overview(row: Mapping[str, Any]) -> Overview:
    """Create the overview from the result of `tasker.overview_v1`."""
    breakers = [OpenBreaker(**{**each, "until": datetime.fromisoformat(each["until"])}) for each in row["breakers"]]
    parts = {
        "at": datetime.fromisoformat(row["at"]),
        "queues": [Queue(**each) for each in row["queues"]],
        "unworked_queues": [Queue(**each) for each in row["unworked_queues"]],
        "processes": [Process(**each) for each in row["processes"]],
        "breakers": breakers,
        "templates": [TemplatePace(**each) for each in row["templates"]],
        "running": [
            RunningStep(**{**each, "reported_at": datetime.fromisoformat(each["reported_at"])})
            for each in row["running"]
        ],
    }
    return Overview(**{**row, **parts})
