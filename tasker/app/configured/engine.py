"""Settings of every process that advances tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tasker.app.configured.resilience import storm_settings
from tasker.engine.calls import FleetRules
from tasker.engine.expansion.choices import ExpansionLimits
from tasker.orchestration.dead_letters import StalenessLimits, StalenessSettings
from tasker.orchestration.pruning import RetentionSettings
from tasker.orchestration.sweep import SweepSettings
from tasker.settings.retention import LIMITS, RetentionRule
from tasker.template.plan import RetryPolicy

if TYPE_CHECKING:
    from tasker.settings.model import Settings


def sweep_settings(settings: Settings) -> SweepSettings:
    """Return the ages at which work counts as lost, and the interval of sweeps."""
    sweep = settings.common.sweep
    timing = settings.orchestration.event_systems.task_readiness.timing
    return SweepSettings(
        slice=sweep.slice,
        hint_grace_ms=sweep.hint_grace_ms,
        park_grace_ms=sweep.park_grace_ms,
        idle_grace_ms=sweep.idle_grace_ms,
        unserved_ms=sweep.unserved_timeout_seconds * 1000 or None,
        forget_ms=sweep.forget_workers_after_seconds * 1000,
        interval_ms=timing.fallback_polling_interval_seconds * 1000,
        storms=storm_settings(settings),
        staleness=staleness_settings(settings),
        retention=retention_settings(settings),
    )


def staleness_settings(settings: Settings) -> StalenessSettings:
    """Return the limits at which tasks without progress are stale, and the actions for them."""
    dlq, stall = settings.orchestration.dlq, settings.orchestration.batch_processing.checkpoint_stall_minutes
    detection, thresholds = dlq.staleness_detection, dlq.staleness_detection.thresholds
    return StalenessSettings(
        enabled=dlq.enabled and detection.enabled,
        dry_run=detection.dry_run,
        slice=detection.batch_size,
        interval_ms=detection.detection_interval_seconds * 1000,
        to_error=detection.actions.auto_transition_to_error,
        to_dlq=detection.actions.auto_move_to_dlq,
        channel=detection.actions.event_channel if detection.actions.emit_events else None,
        limits=StalenessLimits(
            thresholds.waiting_for_dependencies_minutes,
            thresholds.waiting_for_retry_minutes,
            thresholds.steps_in_process_minutes,
            thresholds.task_max_lifetime_hours * 60,
            stall,
        ),
    )


def retention_settings(settings: Settings) -> RetentionSettings:
    """Return the rules for deleting finished tasks and events, with interval and batch size."""
    retention = settings.common.retention
    general = RetentionRule(**{name: getattr(retention, name) or None for name in LIMITS})
    rules = (*map(RetentionRule.parse, retention.rules), *((general,) if general.limits else ()))
    events_ms = retention.events_days * 86_400_000 or None
    return RetentionSettings(rules, retention.interval_seconds * 1000, retention.batch_size, events_ms)


def rules(settings: Settings) -> FleetRules:
    """Return the settings on which all processes that advance tasks must agree."""
    return FleetRules(
        on_blocked=settings.common.execution.on_blocked,
        window=settings.common.execution.enqueue_window,
        limits=growth_limits(settings),
        hidden_seconds=float(settings.common.queues.default_visibility_timeout_seconds),
        dead_letters=settings.orchestration.dlq.enabled,
        log_expansions=settings.orchestration.decision_points.enable_detailed_logging,
    )


def growth_limits(settings: Settings) -> ExpansionLimits:
    """Return the limits of decisions and batches."""
    decisions, batches = settings.orchestration.decision_points, settings.orchestration.batch_processing
    return ExpansionLimits(
        max_decision_depth=decisions.max_decision_depth,
        warn_decision_depth=decisions.warn_threshold_depth,
        max_steps_per_decision=decisions.max_steps_per_decision,
        warn_steps_per_decision=decisions.warn_threshold_steps,
        decisions_enabled=decisions.enabled,
        batches_enabled=batches.enabled,
        max_batches_per_step=batches.max_batches_per_step,
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
