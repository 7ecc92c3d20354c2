"""Queues, processes, breakers and activity of the fleet."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.errors import UsageError
from tasker.errors.remedies import see
from tasker.views.fleet import HandlerInfo, WorkerInfo
from tasker.views.overview import (
    Activity,
    Backlog,
    InFlightStep,
    NamespaceActivity,
    OpenBreaker,
    Overview,
    Process,
    Queue,
    RunningStep,
    TemplatePace,
    Unserved,
)


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

    async def list(self, *, stopped: bool = False) -> Sequence[WorkerInfo]:
        """Return the `live`, `draining` and `lost` (lease expired) processes; with `stopped`, ended ones too."""
        rows = await self._connection.execute(query("fleet", "list"), {"stopped": stopped})
        return [WorkerInfo(*row) for row in rows]

    async def handlers(self, *, namespace: str | None = None, name: str | None = None) -> Sequence[HandlerInfo]:
        """Return the handlers of live workers, by name: all, those of workers that serve a namespace, or one."""
        by_name: defaultdict[str, list[WorkerInfo]] = defaultdict(list)
        for worker in await self.list():
            if worker.state == "live" and (namespace is None or namespace in worker.namespaces):
                for handler in worker.callables:
                    by_name[handler].append(worker)
        return [
            HandlerInfo(
                handler, sorted({each for row in rows for each in row.namespaces}), [row.worker for row in rows]
            )
            for handler, rows in sorted(by_name.items())
            if name is None or handler == name
        ]

    async def serving(self, template_id: int) -> Mapping[str, int]:
        """Return the number of live workers with the handler of each step of a template, by step name.

        A worker that received the step and could not resolve its handler is not counted, as in `tasker task explain`.
        """
        rows = await self._connection.execute(query("fleet", "serving"), {"template": template_id})
        return dict(rows)
