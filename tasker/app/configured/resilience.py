"""Protection of a process: circuit breakers, limits, failure bursts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.resilience.breakers import BreakerPolicies
from tasker.resilience.pressure import DepthLimits
from tasker.settings.queues import DepthThresholds
from tasker.template.plan import BreakerPolicy

if TYPE_CHECKING:
    from tasker.settings.breakers import BreakerThresholds, ReadinessThresholds
    from tasker.settings.model import Settings

_single = DepthThresholds.for_single_process()
SINGLE_PROCESS_DEPTH = DepthLimits(_single.critical_threshold, _single.overflow_threshold)
"""Limits of a single process that submits and works: waiting tasks are in the database and block no other process."""


def breaker_policies(settings: Settings) -> BreakerPolicies:
    """Return the policies of a process's breakers."""
    breakers, storing = settings.common.circuit_breakers, settings.worker.circuit_breakers.ffi_completion_send
    components = breakers.component_configs
    return BreakerPolicies(
        messaging=_policy(components.messaging),
        database=_policy(components.web),
        task_readiness=_policy(components.task_readiness),
        completion=BreakerPolicy(
            storing.failure_threshold, storing.recovery_timeout_seconds, storing.success_threshold
        ),
        slow_completion_ms=storing.slow_send_threshold_ms,
        settle_seconds=breakers.global_settings.min_state_transition_interval_seconds,
    )


def _policy(own: BreakerThresholds | ReadinessThresholds) -> BreakerPolicy:
    """Return the breaker policy of a component: its own setting, else the common one, else its default."""
    return BreakerPolicy(own.failure_threshold, own.timeout_seconds, own.success_threshold)


def depth_limits(settings: Settings) -> DepthLimits:
    """Return the depths at which a namespace has too many ready steps, with any messaging backend."""
    thresholds = settings.common.queues.queue_depth_thresholds
    return DepthLimits(thresholds.critical_threshold, thresholds.overflow_threshold)
