"""Schemas of statistics about recent tasks."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, create_model

from tasker.engine.states.step import StepState
from tasker.engine.states.task import TaskState


class PerformanceMetrics(BaseModel):
    """Figures of the tasks submitted since `analysis_period_start`. Rates and the score range from 0 to 1."""

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
    """Version of a template, with its registration time and the outcomes of its newest tasks."""

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


class SlowTaskInfo(BaseModel):
    """Template with the durations of its tasks."""

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
    """Step of a template with the durations of its handler."""

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
    """Pool utilization of this process, from 0 to 1, and counts of tasks and steps by state."""

    database_pool_utilization: float
    system_health: SystemHealthCounts  # type: ignore[valid-type]


class BottleneckAnalysis(BaseModel):
    """Slowest steps and templates, with recommendations."""

    slow_steps: list[SlowStepInfo]
    slow_tasks: list[SlowTaskInfo]
    resource_utilization: ResourceUtilization
    recommendations: list[str]
