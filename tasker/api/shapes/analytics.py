"""How tasks have gone lately, in answers."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, create_model

from tasker.lifecycle.machines.step import StepState
from tasker.lifecycle.machines.task import TaskState


class PerformanceMetrics(BaseModel):
    """The tasks that were submitted since `analysis_period_start`. Rates and the score go from 0 to 1."""

    total_tasks: int
    active_tasks: int
    completed_tasks: int
    failed_tasks: int
    completion_rate: float
    error_rate: float
    average_task_duration_seconds: float
    average_step_duration_seconds: float
    tasks_per_hour: int
    steps_per_hour: int
    system_health_score: float
    analysis_period_start: datetime
    calculated_at: datetime


class TemplateVersion(BaseModel):
    """A version of a template: when it was registered, and how the newest tasks of it have ended."""

    version: str
    registered_at: datetime
    changed_at: datetime
    steps: int
    executions: int
    errors: int
    error_rate: float
    mean_seconds: float
    max_seconds: float
    first_at: datetime | None
    last_at: datetime | None


class ScalingAdvice(BaseModel):
    """How many workers a namespace should have and why. Null: nothing has ended lately that would tell."""

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


class SlowTaskInfo(BaseModel):
    """A template by how long its tasks take."""

    namespace_name: str
    task_name: str
    version: str
    average_duration_seconds: float
    max_duration_seconds: float
    execution_count: int
    average_step_count: float
    error_count: int
    error_rate: float
    last_executed_at: datetime | None = None


class SlowStepInfo(BaseModel):
    """A step of a template by how long its handler takes."""

    namespace_name: str
    task_name: str
    version: str
    step_name: str
    average_duration_seconds: float
    max_duration_seconds: float
    execution_count: int
    error_count: int
    error_rate: float
    last_executed_at: datetime | None = None


_STATES = [f"{state.value}_{kind}" for kind, of in (("tasks", TaskState), ("steps", StepState)) for state in of]
SystemHealthCounts = create_model(  # type: ignore[call-overload]  # a field for each state
    "SystemHealthCounts", **dict.fromkeys((*_STATES, "total_tasks", "total_steps"), (int, ...))
)


class ResourceUtilization(BaseModel):
    """How full the pool of this process is, from 0 to 1, and what is in which state."""

    database_pool_utilization: float
    system_health: SystemHealthCounts  # type: ignore[valid-type]


class BottleneckAnalysis(BaseModel):
    """The slowest, and what to do about it."""

    slow_steps: list[SlowStepInfo]
    slow_tasks: list[SlowTaskInfo]
    resource_utilization: ResourceUtilization
    recommendations: list[str]
