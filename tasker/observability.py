"""How the worker of this process fares, under the published names (D-172)."""

from __future__ import annotations

import platform

from tasker.bootstrap import get_worker_status, is_worker_running, running_system
from tasker.types import ComponentHealth, HealthCheck, WorkerConfig, WorkerMetrics

__all__ = ["get_health_check", "get_metrics", "get_worker_config"]


def get_health_check() -> HealthCheck:
    """`healthy` when the worker runs and database and messaging answer; `unhealthy`, or `stopped` without a worker."""
    status = get_worker_status()
    python = {"version": platform.python_version(), "worker": status.worker_core_status}
    if not is_worker_running():
        return HealthCheck(status="stopped", is_running=False, python=python)
    found = running_system().app.views.health()
    components = {name: ComponentHealth(name=name, status=how) for name, how in found["components"].items()}
    return HealthCheck(status=found["status"], is_running=True, components=components, python=python)


def get_metrics() -> WorkerMetrics:
    """What the worker has done since its start. Raises `WorkerNotInitializedError`.

    Steps never wait for a handler here, because a worker claims no more than it can run: the `pending` figures are 0.
    """
    system = running_system()
    seen = system.announcer
    return WorkerMetrics(
        environment=system.environment,
        steps_processed=seen.processed,
        steps_succeeded=seen.succeeded,
        steps_failed=seen.failed,
        steps_in_progress=seen.running,
    )


def get_worker_config() -> WorkerConfig:
    """The settings that the worker runs with. Raises `WorkerNotInitializedError`."""
    system = running_system()
    settings = system.runtime.settings
    return WorkerConfig(
        environment=system.environment,
        supported_namespaces=system.namespaces,
        polling_interval_ms=settings.events.poll_ms,
        max_concurrent_handlers=settings.concurrency,
        handler_timeout_ms=settings.timeout_ms,
    )
