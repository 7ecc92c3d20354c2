"""Views of recent performance: rates, slow steps and templates, versions, and advice on the number of workers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated

from tasker.dataclasses import dataclass
from tasker.engine.states.step import StepState
from tasker.engine.states.task import TaskState
from tasker.views.model import Keys, published

OFTEN_FAILED = 0.2
"""Share of errors from which the result recommends an investigation."""
SLOW_SECONDS = 60.0
FULL_POOL = 0.8
COUNTED = (("tasks", TaskState), ("steps", StepState))
STATE_COUNTS = (
    *(f"{state.value}_{kind}" for kind, states in COUNTED for state in states),
    "total_tasks",
    "total_steps",
)


@published(
    "PerformanceMetrics",
    aliases={
        "total": "total_tasks",
        "active": "active_tasks",
        "completed": "completed_tasks",
        "failed": "failed_tasks",
        "task_seconds": "average_task_duration_seconds",
        "step_seconds": "average_step_duration_seconds",
        "health": "system_health_score",
    },
)
@dataclass(frozen=True, slots=True)
class Performance:
    """Figures of the tasks submitted since `analysis_period_start`. Rates and the score range from 0 to 1."""

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


SLOW = {
    "namespace": "namespace_name",
    "template": "task_name",
    "executions": "execution_count",
    "errors": "error_count",
    "mean_seconds": "average_duration_seconds",
    "max_seconds": "max_duration_seconds",
    "last_at": "last_executed_at",
}


@dataclass(frozen=True, slots=True)
class SlowItem:
    """Something slow, with the durations of its executions."""

    namespace: str
    template: str
    version: str
    executions: int
    errors: int
    mean_seconds: float
    max_seconds: float
    last_at: datetime | None

    @property
    def error_rate(self) -> float:
        """Share of failed executions."""
        return round(self.errors / self.executions, 4) if self.executions else 0.0

    @property
    def name(self) -> str:
        """Name for display: `namespace/template`."""
        return f"{self.namespace}/{self.template}"


@published("SlowTaskInfo", aliases={**SLOW, "mean_steps": "average_step_count"}, derived={"error_rate": "error_rate"})
@dataclass(frozen=True, slots=True)
class SlowTemplate(SlowItem):
    """Template with the durations of its tasks."""

    mean_steps: float


@published("SlowStepInfo", aliases={**SLOW, "step": "step_name"}, derived={"error_rate": "error_rate"})
@dataclass(frozen=True, slots=True)
class SlowStep(SlowItem):
    """Step of a template with the durations of its handler."""

    step: str

    @property
    def name(self) -> str:
        """Name for display: `namespace/template/step`."""
        return f"{self.namespace}/{self.template}/{self.step}"


@published("ResourceUtilization", aliases={"pool": "database_pool_utilization", "counts": "system_health"})
@dataclass(frozen=True, slots=True)
class Utilization:
    """Pool utilization of this process, from 0 to 1, and counts of tasks and steps by state."""

    pool: float
    counts: Annotated[Mapping[str, int], Keys("SystemHealthCounts", STATE_COUNTS)]


@published(
    "BottleneckAnalysis",
    aliases={"steps": "slow_steps", "tasks": "slow_tasks", "utilization": "resource_utilization"},
    derived={"recommendations": "recommendations"},
)
@dataclass(frozen=True, slots=True)
class Bottlenecks:
    """Slowest steps and templates, with recommendations."""

    steps: Sequence[SlowStep]
    tasks: Sequence[SlowTemplate]
    utilization: Utilization

    @property
    def recommendations(self) -> list[str]:
        """One sentence for each item that needs attention."""
        failing = [f"{item.name}: {item.error_rate:.0%} of {item.executions} failed" for item in self._failing()]
        slow = [step for step in self.steps if step.mean_seconds >= SLOW_SECONDS]
        sentences = [f"{failure}; list its failures: tasker task list --status error" for failure in failing]
        sentences += [f"{step.name} takes {step.mean_seconds:.0f} s: consider a batchable step" for step in slow]
        if self.utilization.pool >= FULL_POOL:
            sentences.append("the pool of this process is nearly full: raise common.database.pool.max_connections")
        return sentences

    def _failing(self) -> list[SlowItem]:
        return [item for item in (*self.steps, *self.tasks) if item.error_rate >= OFTEN_FAILED]


@published("TemplateVersion", derived={"error_rate": "error_rate"})
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
class ScalingAdvice:
    """Recommended number of workers of a namespace, with the reason. Null values: no recent step ended to measure
    from."""

    namespace: str
    recommended_workers: int
    reason: str
    workers: int
    slots: int
    in_hand: int
    depth: int
    drain_per_second: float | None
    step_seconds: float | None
    clears_in_seconds: float | None
