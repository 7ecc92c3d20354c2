"""Recent performance of tasks, and the slowest steps and templates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from tasker.dataclasses import dataclass
from tasker.engine.plans import not_registered
from tasker.engine.states.step import StepState
from tasker.engine.states.task import TaskState
from tasker.services.fleet.scaling import BY_DEFAULT, ScalingAdvice, ScalingSettings, scaling

if TYPE_CHECKING:
    from tasker.engine.guarded_connection import GuardedConnection

TASKS_READ, TASKS_PER_VERSION = 20_000, 1000
"""Number of the newest tasks that statistics read: of a time span, and of each version."""
OFTEN_FAILED = 0.2
"""Share of errors from which the result recommends an investigation."""
SLOW_SECONDS = 60.0
FULL_POOL = 0.8


@dataclass(frozen=True, slots=True)
class Performance:
    """Performance of the tasks submitted since `analysis_period_start`. Rates and `health` are from 0 to 1."""

    calculated_at: datetime
    analysis_period_start: datetime
    total: int
    active: int
    completed: int
    failed: int
    tasks_per_hour: int
    steps_per_hour: int
    completion_rate: float
    error_rate: float
    task_seconds: float
    step_seconds: float
    health: float


@dataclass(frozen=True, slots=True)
class SlowItem:
    """Slow template, or one `step` of it; `mean_steps` is the average number of steps of its tasks."""

    namespace: str
    template: str
    version: str
    executions: int
    errors: int
    mean_seconds: float
    max_seconds: float
    last_at: datetime | None
    step: str | None = None
    mean_steps: float = 0.0

    @property
    def error_rate(self) -> float:
        """Share of failed executions."""
        return round(self.errors / self.executions, 4) if self.executions else 0.0

    @property
    def name(self) -> str:
        """Name for display: `namespace/template` or `namespace/template/step`."""
        return f"{self.namespace}/{self.template}" + (f"/{self.step}" if self.step else "")


@dataclass(frozen=True, slots=True)
class VersionHistory:
    """Template version with its newest ended tasks: at most 1,000 completed ones and 1,000 others.

    `changed_at` is when its content last changed, `steps` the number of steps at the start of a task; `first_at` and
    `last_at` are ends of those tasks.
    """

    version: str
    registered_at: datetime
    changed_at: datetime
    steps: int
    executions: int
    errors: int
    mean_seconds: float
    max_seconds: float
    first_at: datetime | None
    last_at: datetime | None

    @property
    def error_rate(self) -> float:
        """Share of its tasks that ended without completing."""
        return round(self.errors / self.executions, 4) if self.executions else 0.0


@dataclass(frozen=True, slots=True)
class StepPace:
    """Recent executions of a template step (every instance of a batch worker) and their durations in milliseconds."""

    step: str
    executions: int
    errors: int
    p50_ms: float
    p95_ms: float


@dataclass(frozen=True, slots=True)
class TemplatePaces:
    """Durations of a template version's newest `tasks` and of its `steps`, in milliseconds; None if none has ended."""

    tasks: int
    ended: int
    failed: int
    p50_ms: float | None
    p95_ms: float | None
    steps: Mapping[str, StepPace]


@dataclass(frozen=True, slots=True)
class Bottlenecks:
    """Slowest steps and templates of the window, counts of tasks and steps by state, and recommendations."""

    steps: Sequence[SlowItem]
    tasks: Sequence[SlowItem]
    counts: Mapping[str, int]
    """`<state>_tasks` and `<state>_steps` for every state, `total_tasks`, `total_steps`."""
    pool_utilization: float
    """Utilization of this process's pool, from 0 to 1."""

    @property
    def recommendations(self) -> list[str]:
        """One sentence for each item that needs attention."""
        failing = [f"{item.name}: {item.error_rate:.0%} of {item.executions} failed" for item in self._failing()]
        slow = [step for step in self.steps if step.mean_seconds >= SLOW_SECONDS]
        sentences = [f"{failure}; list its failures: tasker task list --status error" for failure in failing]
        sentences += [f"{step.name} takes {step.mean_seconds:.0f} s: consider a batchable step" for step in slow]
        if self.pool_utilization >= FULL_POOL:
            sentences.append("the pool of this process is nearly full: raise common.database.pool.max_connections")
        return sentences

    def _failing(self) -> list[SlowItem]:
        return [item for item in (*self.steps, *self.tasks) if item.error_rate >= OFTEN_FAILED]


class Analytics:
    """Queries of recent performance, bounded by time and number of tasks. They raise `DatabaseError`."""

    def __init__(self, connection: GuardedConnection) -> None:
        self._connection = connection

    async def performance(self, *, hours: float = 1.0) -> Performance:
        """Return rates and averages of the newest tasks, at most 20,000, submitted in the last `hours`."""
        row = await self._connection.call("tasker.performance_v1(%s::jsonb)", {"hours": hours, "tasks": TASKS_READ})
        times = {name: datetime.fromisoformat(row[name]) for name in ("calculated_at", "analysis_period_start")}
        return Performance(**{**row, **times})

    async def bottlenecks(self, *, hours: float = 24.0, limit: int = 10, min_executions: int = 1) -> Bottlenecks:
        """Return the slowest steps and templates with at least `min_executions`."""
        args = {"hours": hours, "limit": limit, "min_executions": min_executions, "tasks": TASKS_READ}
        row = await self._connection.call("tasker.bottlenecks_v1(%s::jsonb)", args)
        sizes = self._connection.pool.sizes()
        steps, tasks = ([_slow(entry) for entry in row[kind]] for kind in ("steps", "tasks"))
        return Bottlenecks(steps, tasks, _counts(row), round(sizes["lent"] / sizes["max"], 4))

    async def versions(self, namespace: str, template: str) -> list[VersionHistory]:
        """Return the history of each version of a template, in order of registration. Raises `TemplateNotFound`."""
        args = {"namespace": namespace, "template": template, "tasks": TASKS_PER_VERSION}
        rows = (await self._connection.call("tasker.versions_v1(%s::jsonb)", args))["versions"]
        if rows is None:
            raise not_registered(namespace, template, None)
        return [VersionHistory(**{**row, **_times(row)}) for row in rows]

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


def _times(row: Mapping[str, Any]) -> dict[str, datetime | None]:
    times = ("registered_at", "changed_at", "first_at", "last_at")
    return {name: row[name] and datetime.fromisoformat(row[name]) for name in times}


def _slow(row: Mapping[str, Any]) -> SlowItem:
    return SlowItem(**{**row, "last_at": row["last_at"] and datetime.fromisoformat(row["last_at"])})


def _counts(row: Mapping[str, Any]) -> dict[str, int]:
    kinds = (("tasks", TaskState, row["task_states"]), ("steps", StepState, row["step_states"]))
    counts = {f"{state.value}_{kind}": int(states.get(state.value, 0)) for kind, of, states in kinds for state in of}
    return counts | {f"total_{kind}": sum(states.values()) for kind, _, states in kinds}
