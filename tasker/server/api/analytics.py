"""Statistics of recent tasks and the slowest steps and templates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fastapi import Request

from tasker.operations.analytics import AnalyticsOperations, ScalingSettings
from tasker.server.operation_routes import serves
from tasker.server.program import program_of
from tasker.server.routes import router
from tasker.views.analytics import Bottlenecks, Performance, ScalingAdvice, VersionHistory

routes = router("analytics")


@serves(routes, AnalyticsOperations.performance)
async def get_performance(request: Request, hours: float) -> Performance:
    return await program_of(request).analytics.performance(hours=hours)


@serves(routes, AnalyticsOperations.bottlenecks)
async def get_bottlenecks(request: Request, **which: Any) -> Bottlenecks:
    return await program_of(request).analytics.bottlenecks(**which)


@serves(routes, AnalyticsOperations.template_history)
async def get_history_of_template(request: Request, namespace: str, template: str) -> Sequence[VersionHistory]:
    return await program_of(request).analytics.versions(namespace, template)


@serves(routes, AnalyticsOperations.scaling)
async def get_scaling(request: Request, settings: ScalingSettings) -> Sequence[ScalingAdvice]:
    return await program_of(request).analytics.scaling(settings)
