"""Operations of recent performance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from tasker.dataclasses import dataclass
from tasker.operations.operation import Endpoint, Param, RemoteService
from tasker.operations.permissions import Permission
from tasker.views.analytics import Bottlenecks, Performance, ScalingAdvice, VersionHistory

Hours = Annotated[float, Param(above=0, at_most=720, description="Of tasks that were submitted within so many hours.")]
Workers = Annotated[int, Param(at_least=0, at_most=10_000)]
Depth = Annotated[int, Param(at_least=0, at_most=10_000_000)]


@dataclass(frozen=True, slots=True)
class ScalingSettings:
    """Thresholds of the recommendation. Between the two depths nothing changes."""

    min_workers: Workers = 2
    max_workers: Workers = 50
    scale_up_depth: Depth = 100
    """More workers if more steps wait."""
    scale_down_depth: Depth = 10
    """One worker less if fewer steps wait."""
    steps_per_worker: Annotated[int, Param(at_least=1, at_most=1_000_000)] = 25
    """Waiting steps per worker while the speed of the steps is unknown."""
    clear_within_seconds: Annotated[float, Param(above=0, at_most=86_400)] = 60.0
    """More workers if the current ones need longer for the waiting steps."""
    cooldown_seconds: Annotated[float, Param(at_least=0, at_most=86_400)] = 300.0
    """Minimum time since a worker started or stopped before fewer are recommended. More are recommended at once."""


BY_DEFAULT = ScalingSettings()


class AnalyticsOperations:
    """Operations of recent performance, as clients have them."""

    @Endpoint("GET", "/v1/analytics/performance", Permission.SYSTEM_ANALYTICS_READ, "analytics.performance")
    async def performance(self, *, hours: Hours = 1) -> Performance:
        """Return rates and averages of at most the newest 20,000 tasks."""

    @Endpoint("GET", "/v1/analytics/bottlenecks", Permission.SYSTEM_ANALYTICS_READ, "analytics.bottlenecks")
    async def bottlenecks(
        self,
        *,
        limit: Annotated[int, Param(at_least=1, at_most=100)] = 10,
        min_executions: Annotated[
            int, Param(at_least=1, at_most=1_000_000, description="Leave out what ran less often.")
        ] = 5,
        hours: Hours = 24,
    ) -> Bottlenecks:
        """Return the slowest steps and templates among at most the newest 20,000 tasks."""

    @Endpoint(
        "GET",
        "/v1/analytics/templates/{namespace}/{name}",
        Permission.SYSTEM_ANALYTICS_READ,
        "analytics.versions",
        errors=(404,),
    )
    async def template_history(
        self, namespace: str, template: Annotated[str, Param("name")]
    ) -> Sequence[VersionHistory]:
        """Return the results of each version of a template. Counts its newest 1,000 successful and 1,000 other ended
        tasks.

        Raises `TemplateNotFound`.
        """

    @Endpoint("GET", "/v1/analytics/scaling", Permission.SYSTEM_ANALYTICS_READ, "analytics.scaling")
    async def scaling(self, settings: ScalingSettings = BY_DEFAULT) -> Sequence[ScalingAdvice]:
        """Return the recommended number of workers per namespace. It depends on the backlog and the throughput of the
        last five minutes."""


class RemoteAnalytics(RemoteService):
    """Analytics of a server, under the names of `tasker.services.fleet.analytics.Analytics`."""

    performance = AnalyticsOperations.performance
    bottlenecks = AnalyticsOperations.bottlenecks
    versions = AnalyticsOperations.template_history
    scaling = AnalyticsOperations.scaling
