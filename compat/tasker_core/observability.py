"""Health, metrics and settings of the worker in this process.

The functions from `health_basic` on return the answers of the worker's HTTP port as plain data, without a port. All but
`ready` and `alive` raise `WorkerNotInitializedError` if no worker runs.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any, TypeVar

from tasker.errors import TaskerError
from tasker.plugins.contributions import metrics_of
from tasker.process.metrics import PROCESS_CATALOGUE
from tasker.process.status import ProcessStatus
from tasker_core._runtime.bootstrap import get_worker_status, running_system
from tasker_core.types.worker import ComponentHealth, FfiDispatchMetrics, HealthCheck, WorkerConfig, WorkerMetrics

T = TypeVar("T")

__all__ = [
    "alive",
    "cache_clear",
    "cache_stats",
    "config",
    "environment",
    "event_stats",
    "get_health_check",
    "get_metrics",
    "get_worker_config",
    "health_basic",
    "health_detailed",
    "health_live",
    "health_ready",
    "listening_stats",
    "metrics_worker",
    "prometheus_metrics",
    "ready",
    "template_get",
    "template_refresh",
    "template_validate",
    "templates_list",
]


def get_health_check() -> HealthCheck:
    """Return the health of the worker. Raises `WorkerNotInitializedError`.

    The status is `healthy` if database and messaging answer, else `unhealthy`.
    """
    health = running_system().app.views.health()
    python = {"version": platform.python_version(), "worker": get_worker_status().worker_core_status}
    components = {name: ComponentHealth(name=name, status=how) for name, how in health["components"].items()}
    return HealthCheck(status=health["status"], is_running=True, components=components, python=python)


def get_metrics() -> WorkerMetrics:
    """Return the counters of the worker since its start and its pending work. Raises `WorkerNotInitializedError`.

    Pending steps are claimed and wait for a thread or a child process; starving steps have waited for longer than
    `starvation_warning_threshold_ms`.
    """
    system = running_system()
    seen, waiting, pool = system.announcer, waiting_steps(), system.app.original.health.pool
    return WorkerMetrics(
        dispatch_channel_pending=waiting.pending_count,
        oldest_pending_age_ms=waiting.oldest_pending_age_ms,
        newest_pending_age_ms=waiting.newest_pending_age_ms,
        starvation_detected=waiting.starvation_detected,
        starving_event_count=waiting.starving_event_count,
        database_pool_size=pool["made"],
        database_pool_idle=pool["made"] - pool["lent"],
        environment=system.environment,
        steps_processed=seen.processed,
        steps_succeeded=seen.succeeded,
        steps_failed=seen.failed,
        steps_in_progress=seen.running,
    )


def waiting_steps() -> FfiDispatchMetrics:
    """Return the ages of claimed steps that wait for a free slot; the oldest is identified by its step's id."""
    runtime = running_system().runtime
    now = time.monotonic()
    ages = {step: round((now - since) * 1000) for step, since in runtime.execution.runner.waiting_since.items()}
    starving = sum(age > runtime.settings.hand_off.starvation_warning_threshold_ms for age in ages.values())
    return FfiDispatchMetrics(
        pending_count=len(ages),
        oldest_pending_age_ms=max(ages.values(), default=None),
        newest_pending_age_ms=min(ages.values(), default=None),
        oldest_event_id=max(ages, key=lambda step: ages[step], default=None),
        starvation_detected=starving > 0,
        starving_event_count=starving,
    )


def get_worker_config() -> WorkerConfig:
    """Return the settings that the worker runs with. Raises `WorkerNotInitializedError`."""
    system = running_system()
    settings = system.runtime.settings
    return WorkerConfig(
        environment=system.environment,
        supported_namespaces=system.namespaces,
        database_pool_size=system.app.original.health.pool["max"],
        polling_interval_ms=settings.events.poll_ms,
        starvation_threshold_ms=settings.hand_off.starvation_warning_threshold_ms,
        max_concurrent_handlers=settings.dispatch.max_concurrent_handlers,
        handler_timeout_ms=settings.dispatch.handler_timeout_ms,
    )


def health_basic() -> Mapping[str, Any]:
    """Return the worst status of all parts: `status` (`healthy`, `degraded`, `unhealthy`), `worker_id`, `timestamp`."""
    return _told(lambda process: process.basic())


def health_live() -> Mapping[str, Any]:
    """Return the liveness answer: as `health_basic`, with the status `alive`."""
    return _told(lambda process: process.basic("alive"))


def health_ready() -> Mapping[str, Any]:
    """Return `ready` or `not_ready`, with the checks behind it."""
    return _told(lambda process: process.ready()[0])


def health_detailed() -> Mapping[str, Any]:
    """Return the state of every part: `checks`, each with `status` and `message`, and `system_info`."""
    return _told(lambda process: process.detailed())


def ready() -> bool:
    """Return True if every part is healthy. Never raises."""
    with suppress(Exception):
        return bool(health_basic()["status"] == "healthy")
    return False


def alive() -> bool:
    """Return True while a worker runs. Never raises."""
    with suppress(Exception):
        return bool(health_live()["status"] == "alive")
    return False


def metrics_worker() -> Mapping[str, Any]:
    """Return the metrics of `get_metrics` as plain data."""
    return get_metrics().model_dump()


def event_stats() -> Mapping[str, Any]:
    """Return counts of the domain events delivered since the start.

    The keys are `router`, `in_process_bus`, `captured_at` and `worker_id`.
    """
    return _told(lambda process: process.events())


def listening_stats() -> Mapping[str, Any]:
    """Return statistics about how the worker found work.

    They cover polls that found work, failed polls, rates and latency, and work found by polling alone.
    """
    return asdict(running_system().runtime.events.statistics())


def prometheus_metrics() -> str:
    """Return the metrics in the format of `/metrics`, for a push gateway."""
    return _told(lambda process: process.numbers())


def templates_list(include_cache_stats: bool = False, namespace: str | None = None) -> Mapping[str, Any]:
    """Return the namespaces the worker serves, the templates it found at its start, and its handlers."""
    return _told(lambda process: process.templates(namespace, include_cache_stats=include_cache_stats))


def cache_stats() -> Mapping[str, Any]:
    """Return statistics of the template cache: `total_entries`, `hits`, `misses`, `evictions`, `last_maintenance`."""
    stats = running_system().runtime.worker.plans.cache.stats()
    at = None if stats.last_maintenance is None else datetime.fromtimestamp(stats.last_maintenance, UTC)
    return {**asdict(stats), "last_maintenance": at}


def cache_clear() -> Mapping[str, Any]:
    """Empty the template cache; each template is read again when it is needed. Return `success` and `message`."""
    system = running_system()

    async def clear() -> int:
        return system.runtime.worker.plans.forget()

    return {"success": True, "message": f"forgot {system.app.wait_for(clear())} templates"}


def template_refresh(namespace: str, name: str, version: str) -> Mapping[str, Any]:
    """Read a registered template again; return `success` and `message`. `success` is False for an unknown template."""
    system = running_system()
    try:
        template = system.app.wait_for(system.runtime.worker.plans.refresh(namespace, name, version))
    except TaskerError as error:
        return {"success": False, "message": error.message}
    return {"success": True, "message": f"read {template.plan.id}"}


def template_get(namespace: str, name: str, version: str) -> Mapping[str, Any]:
    """Return a template in its compiled form. Raises `TemplateNotFound`."""
    return _told(lambda process: process.template(namespace, name, version))


def template_validate(namespace: str, name: str, version: str) -> Mapping[str, Any]:
    """Return whether each step of a template has a handler here. Raises `TemplateNotFound`."""
    validation = _told(lambda process: process.validation(namespace, name, version))
    named = {"namespace": namespace, "name": name, "version": version}
    return {**validation, **named, "handler_count": len(validation["step_handlers"]), "issues": validation["errors"]}


def config() -> Mapping[str, Any]:
    """Return the settings in effect with secrets replaced; `metadata.redacted_fields` lists the replaced ones."""
    from tasker.redaction import redacted
    from tasker.settings.installed_tables import settings_model

    system = running_system()
    settings, hidden = redacted((system.configured.settings or settings_model()()).to_dict())
    source = os.environ.get("TASKER_CONFIG_PATH") or os.environ.get("TASKER_CONFIG_ROOT") or "defaults"
    metadata = {"timestamp": datetime.now(UTC), "source": source, "redacted_fields": hidden}
    return {"environment": system.environment, **settings, "metadata": metadata}


def environment() -> str:
    """Return the environment that the process runs in."""
    return running_system().environment


def _told(ask: Callable[[ProcessStatus], T]) -> T:
    """Evaluate `ask` in the event loop of the process."""
    system = running_system()

    async def answer() -> T:
        metrics = metrics_of(system.runtime.plugins, PROCESS_CATALOGUE)
        pool = system.app.original.health.pool
        return ask(ProcessStatus(system.observed, system.environment, pool["max"], metrics))

    return system.app.wait_for(answer())
