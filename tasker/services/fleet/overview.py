"""Queues, processes, breakers and activity of the fleet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from tasker.dataclasses import dataclass
from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.errors import UsageError
from tasker.errors.remedies import see
from tasker.views.progress import ReportedProgress
from tasker.views.task_lists import ProcessRow


@dataclass(frozen=True, slots=True)
class NamespaceActivity:
    """Activity of a namespace: tasks per slice, oldest first, its open tasks, and dead letters that need an operator.

    A task is `running` while one of its steps is enqueued or claimed by a worker, else `waiting`.
    """

    namespace: str
    submitted: Sequence[int]
    ended: Sequence[int]
    failed: Sequence[int]
    running: int
    waiting: int
    dead_letters: int


@dataclass(frozen=True, slots=True)
class Unserved:
    """Handler that workers lack although they received its steps; `steps` wait for it, the first `since` then."""

    callable: str
    namespace: str
    steps: int
    since: datetime


@dataclass(frozen=True, slots=True)
class Activity:
    """The last `seconds` in equal `slices`, with those `namespaces` first in which something happens.

    Waits are from the queue to a worker; None: no step has waited.
    `retries_due`: steps that run again within the next hour, counted to 10,000.
    """

    at: datetime
    seconds: float
    slices: int
    namespaces: Sequence[NamespaceActivity]
    steps_ended: int
    wait_p50_ms: float | None
    wait_p95_ms: float | None
    retries_due: int
    unserved: Sequence[Unserved]
    waits_p50_ms: Sequence[float | None] = ()
    waits_p95_ms: Sequence[float | None] = ()
    """Of each slice, from the oldest on."""
    submitted: Sequence[int] = ()
    ended: Sequence[int] = ()
    failed: Sequence[int] = ()
    """Tasks of all namespaces in each slice."""

    @property
    def steps_per_second(self) -> float:
        """Average rate of successfully ended steps, for tasks of this period."""
        return self.steps_ended / self.seconds if self.seconds else 0.0


def activity(row: Mapping[str, Any]) -> Activity:
    """Create the activity from the result of `tasker.activity_v1`."""
    unserved = [Unserved(**{**entry, "since": datetime.fromisoformat(entry["since"])}) for entry in row["unserved"]]
    namespaces = [NamespaceActivity(**entry) for entry in row["namespaces"]]
    at = datetime.fromisoformat(row["at"])
    return Activity(**{**row, "at": at, "namespaces": namespaces, "unserved": unserved})


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

    Of `open` tasks, and of pending `dead_letters`, at most 100,000 are counted. There are so many
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
    breakers = [
        OpenBreaker(**{**breaker, "until": datetime.fromisoformat(breaker["until"])}) for breaker in row["breakers"]
    ]
    parts = {
        "at": datetime.fromisoformat(row["at"]),
        "queues": [Queue(**queue) for queue in row["queues"]],
        "unworked_queues": [Queue(**queue) for queue in row["unworked_queues"]],
        "processes": [Process(**process) for process in row["processes"]],
        "breakers": breakers,
        "templates": [TemplatePace(**template) for template in row["templates"]],
        "running": [
            RunningStep(**{**step, "reported_at": datetime.fromisoformat(step["reported_at"])})
            for step in row["running"]
        ],
    }
    return Overview(**{**row, **parts})


class Workers:
    """Queries of the registry. It is advisory: a worker whose heartbeats fail continues until it is fenced."""

    def __init__(self, connection: Statements) -> None:
        self._connection = connection

    async def list(self, *, stopped: bool = False) -> Sequence[ProcessRow]:
        """Return the `live`, `draining` and `lost` (lease expired) processes; with `stopped`, ended ones too."""
        rows = await self._connection.execute(query("fleet", "list"), {"stopped": stopped})
        return [ProcessRow(*row) for row in rows]

    async def serving(self, template_id: int) -> Mapping[str, int]:
        """Return the number of live workers with the handler of each step of a template, by step name.

        A worker that received the step and could not resolve its handler is not counted, as in `tasker task explain`.
        """
        rows = await self._connection.execute(query("fleet", "serving"), {"template": template_id})
        return dict(rows)
