"""Recent performance of tasks, and the slowest steps and templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tasker.engine.plans import not_registered
from tasker.operations.analytics import BY_DEFAULT, ScalingSettings
from tasker.services.fleet.scaling import scaling
from tasker.views.analytics import (
    COUNTED,
    Bottlenecks,
    Performance,
    ScalingAdvice,
    SlowStep,
    SlowTemplate,
    StepPace,
    TemplatePaces,
    Utilization,
    VersionHistory,
)

if TYPE_CHECKING:
    from tasker.engine.guarded_connection import GuardedConnection

TASKS_READ, TASKS_PER_VERSION = 20_000, 1000
"""Number of the newest tasks that statistics read: of a time span, and of each version."""


class Analytics:
    """Queries of recent performance, bounded by time and number of tasks. They raise `DatabaseError`."""

    def __init__(self, connection: GuardedConnection) -> None:
        self._connection = connection

    async def performance(self, *, hours: float = 1) -> Performance:
        """Return rates and averages of the newest tasks, at most 20,000, submitted in the last `hours`."""
        row = await self._connection.call("tasker.performance_v1(%s::jsonb)", {"hours": hours, "tasks": TASKS_READ})
        return Performance(**{**row, **_times(row, "calculated_at", "analysis_period_start")})

    async def bottlenecks(self, *, hours: float = 24, limit: int = 10, min_executions: int = 5) -> Bottlenecks:
        """Return the slowest steps and templates with at least `min_executions`."""
        args = {"hours": hours, "limit": limit, "min_executions": min_executions, "tasks": TASKS_READ}
        row = await self._connection.call("tasker.bottlenecks_v1(%s::jsonb)", args)
        sizes = self._connection.pool.sizes()
        steps = [SlowStep(**{**entry, **_times(entry, "last_at")}) for entry in row["steps"]]
        tasks = [SlowTemplate(**{**entry, **_times(entry, "last_at")}) for entry in row["tasks"]]
        return Bottlenecks(steps, tasks, Utilization(round(sizes["lent"] / sizes["max"], 4), _counts(row)))

    async def versions(self, namespace: str, template: str) -> list[VersionHistory]:
        """Return the history of each version of a template, in order of registration. Raises `TemplateNotFound`."""
        args = {"namespace": namespace, "template": template, "tasks": TASKS_PER_VERSION}
        rows = (await self._connection.call("tasker.versions_v1(%s::jsonb)", args))["versions"]
        if rows is None:
            raise not_registered(namespace, template, None)
        return [
            VersionHistory(**{**row, **_times(row, "registered_at", "changed_at", "first_at", "last_at")})
            for row in rows
        ]

    async def paces(self, namespace: str, template: str, version: str, *, tasks: int = 200) -> TemplatePaces:
        """Return the durations of a template version and of its steps, from its newest tasks."""
        args = {"namespace": namespace, "template": template, "version": version, "tasks": tasks}
        row = await self._connection.call("tasker.step_pace_v1(%s::jsonb)", args)
        return TemplatePaces(**{**row, "steps": {pace["step"]: StepPace(**pace) for pace in row["steps"]}})

    async def scaling(
        self, settings: ScalingSettings = BY_DEFAULT, *, namespaces: Sequence[str] | None = None
    ) -> list[ScalingAdvice]:
        """Return how many workers each namespace should have, or each of these `namespaces`."""
        return await scaling(self._connection, settings, namespaces)


def _times(row: Mapping[str, Any], *names: str) -> dict[str, datetime | None]:
    return {name: row[name] and datetime.fromisoformat(row[name]) for name in names}


def _counts(row: Mapping[str, Any]) -> dict[str, int]:
    kinds = [(kind, states, row[f"{kind[:-1]}_states"]) for kind, states in COUNTED]
    counts = {f"{state.value}_{kind}": int(found.get(state.value, 0)) for kind, of, found in kinds for state in of}
    return counts | {f"total_{kind}": sum(found.values()) for kind, _, found in kinds}
