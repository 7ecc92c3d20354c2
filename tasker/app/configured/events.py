"""Settings of how a process learns of work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tasker.messaging.listening_modes import DeploymentMode, EventSettings

if TYPE_CHECKING:
    from tasker.settings.listening import HealthReporting
    from tasker.settings.model import Settings


def worker_events(settings: Settings) -> EventSettings:
    """Return how a worker learns of steps."""
    system = settings.worker.event_systems.worker
    listener, poller = system.metadata.listener, system.metadata.fallback_poller
    return EventSettings(
        system_id=system.system_id,
        deployment_mode=DeploymentMode(system.deployment_mode),
        poll_ms=poller.polling_interval_ms,
        connection_timeout_seconds=listener.connection_timeout_seconds,
        event_timeout_seconds=listener.event_timeout_seconds,
        retry_interval_seconds=listener.retry_interval_seconds,
        max_retry_attempts=listener.max_retry_attempts,
        health_check_interval_seconds=system.timing.health_check_interval_seconds,
        **_common(settings, system.health),
    )


def orchestrator_events(settings: Settings) -> EventSettings:
    """Return how an orchestrator learns of results."""
    system = settings.orchestration.event_systems.orchestration
    return EventSettings(
        system_id=system.system_id,
        deployment_mode=DeploymentMode(system.deployment_mode),
        poll_ms=system.timing.fallback_polling_interval_seconds * 1000,
        health_check_interval_seconds=system.timing.health_check_interval_seconds,
        **_common(settings, system.health),
    )


def _common(settings: Settings, health: HealthReporting) -> dict[str, Any]:
    return {
        "lost_poll_ms": settings.common.queues.poll_interval_ms,
        "listen_url": settings.common.database.listen_url or None,
        "health_enabled": health.enabled,
        "max_consecutive_errors": health.max_consecutive_errors,
        "error_rate_threshold_per_minute": health.error_rate_threshold_per_minute,
        "performance_monitoring_enabled": health.performance_monitoring_enabled,
    }
