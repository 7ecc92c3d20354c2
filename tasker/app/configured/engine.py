"""Settings of every process that advances tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.engine.calls import FleetRules
from tasker.engine.expansion.choices import ExpansionLimits
from tasker.orchestration.sweep import SweepSettings
from tasker.template.plan import RetryPolicy

if TYPE_CHECKING:
    from tasker.settings.model import Settings


def sweep_settings(settings: Settings) -> SweepSettings:
    """Return the tables that a sweep reads."""
    common, orchestration = settings.common, settings.orchestration
    return SweepSettings(
        ages=common.sweep,
        timing=orchestration.event_systems.task_readiness.timing,
        bursts=common.failure_storm,
        dead_letters=orchestration.dlq,
        batches=orchestration.batch_processing,
        retention=common.retention,
    )


def rules(settings: Settings) -> FleetRules:
    """Return the settings on which all processes that advance tasks must agree."""
    orchestration = settings.orchestration
    return FleetRules(
        execution=settings.common.execution,
        limits=ExpansionLimits(orchestration.decision_points, orchestration.batch_processing),
        hidden_seconds=float(settings.common.queues.default_visibility_timeout_seconds),
        dead_letters=orchestration.dlq,
    )


def retry_policy(settings: Settings) -> RetryPolicy:
    """Return the policy of steps whose template has no retry settings."""
    backoff = settings.common.backoff
    return RetryPolicy(
        max_backoff_ms=backoff.max_backoff_seconds * 1000,
        multiplier=backoff.backoff_multiplier,
        delays_ms=tuple(seconds * 1000 for seconds in backoff.default_backoff_seconds),
        jitter=backoff.jitter_max_percentage if backoff.jitter_enabled else 0.0,
    )
