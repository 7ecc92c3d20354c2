"""Statistics of recent tasks and the slowest steps and templates."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated, Any

from fastapi import Query, Request

from tasker.operations.permissions import Permission
from tasker.server.auth.gate import needs
from tasker.server.program import program_of
from tasker.server.rendering import Json
from tasker.server.routes import router
from tasker.server.shapes.analytics import BottleneckAnalysis, PerformanceMetrics, ScalingAdvice, TemplateVersion
from tasker.server.shapes.problems import refusals
from tasker.services.fleet.analytics import SlowItem
from tasker.services.fleet.scaling import BY_DEFAULT, ScalingSettings

routes = router("analytics")
Workers = Annotated[int, Query(ge=0, le=10_000)]
Depth = Annotated[int, Query(ge=0, le=10_000_000)]
Hours = Annotated[int, Query(ge=1, le=720, description="Of tasks that were submitted within so many hours.")]


@routes.get(
    "/v1/analytics/performance",
    response_model=PerformanceMetrics,
    responses=refusals(),
    **needs(Permission.SYSTEM_ANALYTICS_READ),
)
async def get_performance(request: Request, hours: Hours = 1) -> Json:
    """Return rates and averages of at most the newest 20,000 tasks."""
    performance = await program_of(request).analytics.performance(hours=hours)
    return Json(
        {
            "total_tasks": performance.total,
            "active_tasks": performance.active,
            "completed_tasks": performance.completed,
            "failed_tasks": performance.failed,
            "completion_rate": performance.completion_rate,
            "error_rate": performance.error_rate,
            "average_task_duration_seconds": performance.task_seconds,
            "average_step_duration_seconds": performance.step_seconds,
            "tasks_per_hour": performance.tasks_per_hour,
            "steps_per_hour": performance.steps_per_hour,
            "system_health_score": performance.health,
            "analysis_period_start": performance.analysis_period_start,
            "calculated_at": performance.calculated_at,
        }
    )


@routes.get(
    "/v1/analytics/bottlenecks",
    response_model=BottleneckAnalysis,
    responses=refusals(),
    **needs(Permission.SYSTEM_ANALYTICS_READ),
)
async def get_bottlenecks(
    request: Request,
    limit: Annotated[int, Query(ge=1, le=100)] = 10,
    min_executions: Annotated[int, Query(ge=1, le=1_000_000, description="Leave out what ran less often.")] = 5,
    hours: Hours = 24,
) -> Json:
    """Return the slowest steps and templates among at most the newest 20,000 tasks."""
    analytics = program_of(request).analytics
    bottlenecks = await analytics.bottlenecks(hours=hours, limit=limit, min_executions=min_executions)
    return Json(
        {
            "slow_steps": [{**_slow(step), "step_name": step.step} for step in bottlenecks.steps],
            "slow_tasks": [
                {**_slow(template), "average_step_count": template.mean_steps} for template in bottlenecks.tasks
            ],
            "resource_utilization": {
                "database_pool_utilization": bottlenecks.pool_utilization,
                "system_health": bottlenecks.counts,
            },
            "recommendations": bottlenecks.recommendations,
        }
    )


@routes.get(
    "/v1/analytics/templates/{namespace}/{name}",
    response_model=list[TemplateVersion],
    responses=refusals(404),
    **needs(Permission.SYSTEM_ANALYTICS_READ),
)
async def get_history_of_template(request: Request, namespace: str, name: str) -> Json:
    """Return the results of each version of a template. Counts its newest 1,000 successful and 1,000 other ended
    tasks."""
    versions = await program_of(request).analytics.versions(namespace, name)
    return Json([{**asdict(version), "error_rate": version.error_rate} for version in versions])


@routes.get(
    "/v1/analytics/scaling",
    response_model=list[ScalingAdvice],
    responses=refusals(),
    **needs(Permission.SYSTEM_ANALYTICS_READ),
)
async def get_scaling(
    request: Request,
    min_workers: Workers = BY_DEFAULT.min_workers,
    max_workers: Workers = BY_DEFAULT.max_workers,
    scale_up_depth: Depth = BY_DEFAULT.scale_up_depth,
    scale_down_depth: Depth = BY_DEFAULT.scale_down_depth,
    steps_per_worker: Annotated[int, Query(ge=1, le=1_000_000)] = BY_DEFAULT.steps_per_worker,
    clear_within_seconds: Annotated[float, Query(gt=0, le=86_400)] = BY_DEFAULT.clear_within_seconds,
    cooldown_seconds: Annotated[float, Query(ge=0, le=86_400)] = BY_DEFAULT.cooldown_seconds,
) -> Json:
    """Return the recommended number of workers per namespace. It depends on the backlog and the throughput of the last
    five minutes."""
    settings = ScalingSettings(
        min_workers,
        max_workers,
        scale_up_depth,
        scale_down_depth,
        steps_per_worker,
        clear_within_seconds,
        cooldown_seconds,
    )
    return Json([advice.to_dict() for advice in await program_of(request).analytics.scaling(settings)])


def _slow(item: SlowItem) -> dict[str, Any]:
    return {
        "namespace_name": item.namespace,
        "task_name": item.template,
        "version": item.version,
        "average_duration_seconds": item.mean_seconds,
        "max_duration_seconds": item.max_seconds,
        "execution_count": item.executions,
        "error_count": item.errors,
        "error_rate": item.error_rate,
        "last_executed_at": item.last_at,
    }
