"""How the worker of this process fares, under the published names.

The functions from `health_basic` on answer what the port of a worker answers to the same question, as plain data and
without a port. All but `get_health_check`, `ready` and `alive` raise `WorkerNotInitializedError` without a worker.
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

from tasker.api.process.metrics import CATALOGUE
from tasker.api.process.telling import ProcessStatus
from tasker.bootstrap import get_worker_status, is_worker_running, running_system
from tasker.errors import TaskerError
from tasker.plugins.offers import metrics_of
from tasker.types import ComponentHealth, FfiDispatchMetrics, HealthCheck, WorkerConfig, WorkerMetrics

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
    """`healthy` when the worker runs and database and messaging answer; `unhealthy`, or `stopped` without a worker."""
    status = get_worker_status()
    python = {"version": platform.python_version(), "worker": status.worker_core_status}
    if not is_worker_running():
        return HealthCheck(status="stopped", is_running=False, python=python)
    found = running_system().app.views.health()
    components = {name: ComponentHealth(name=name, status=how) for name, how in found["components"].items()}
    return HealthCheck(status=found["status"], is_running=True, components=components, python=python)


def get_metrics() -> WorkerMetrics:
    """What the worker has done since its start, and what it has to do. Raises `WorkerNotInitializedError`.

    Pending are the steps that it has claimed and that wait for a thread or a child process; starving are those that
    wait for longer than `starvation_warning_threshold_ms`.
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
    """The claimed steps that wait for a place to run; the oldest by the identifier of its step."""
    runtime = running_system().runtime
    now = time.monotonic()
    ages = {step: round((now - since) * 1000) for step, since in runtime.execution.runner.waiting_since.items()}
    starving = sum(age > runtime.settings.starvation_ms for age in ages.values())
    return FfiDispatchMetrics(
        pending_count=len(ages),
        oldest_pending_age_ms=max(ages.values(), default=None),
        newest_pending_age_ms=min(ages.values(), default=None),
        oldest_event_id=max(ages, key=lambda step: ages[step], default=None),
        starvation_detected=starving > 0,
        starving_event_count=starving,
    )


def get_worker_config() -> WorkerConfig:
    """The settings that the worker runs with. Raises `WorkerNotInitializedError`."""
    system = running_system()
    settings = system.runtime.settings
    return WorkerConfig(
        environment=system.environment,
        supported_namespaces=system.namespaces,
        database_pool_size=system.app.original.health.pool["max"],
        polling_interval_ms=settings.events.poll_ms,
        starvation_threshold_ms=settings.starvation_ms,
        max_concurrent_handlers=settings.concurrency,
        handler_timeout_ms=settings.timeout_ms,
    )


def health_basic() -> Mapping[str, Any]:
    """The worst of its parts: `status` (`healthy`, `degraded`, `unhealthy`), `worker_id`, `timestamp`."""
    return _told(lambda process: process.basic())


def health_live() -> Mapping[str, Any]:
    """The same with the status `alive`: it answers."""
    return _told(lambda process: process.basic("alive"))


def health_ready() -> Mapping[str, Any]:
    """`ready` or `not_ready`, with the checks that say so."""
    return _told(lambda process: process.ready()[0])


def health_detailed() -> Mapping[str, Any]:
    """Every part: `checks`, each with `status` and `message`, and `system_info`."""
    return _told(lambda process: process.detailed())


def ready() -> bool:
    """True when every part does well. Never raises."""
    with suppress(Exception):
        return bool(health_basic()["status"] == "healthy")
    return False


def alive() -> bool:
    """True while a worker runs. Never raises."""
    with suppress(Exception):
        return bool(health_live()["status"] == "alive")
    return False


def metrics_worker() -> Mapping[str, Any]:
    """`get_metrics` as plain data."""
    return get_metrics().model_dump()


def event_stats() -> Mapping[str, Any]:
    """Where domain events went since the start: `router`, `in_process_bus`, `captured_at`, `worker_id`."""
    return _told(lambda process: process.events())


def listening_stats() -> Mapping[str, Any]:
    """How it has learned of work: looks that found some, that failed, how fast, and what only polling found."""
    return asdict(running_system().runtime.events.statistics())


def prometheus_metrics() -> str:
    """What `/metrics` of a port tells, for a gateway that numbers are pushed to."""
    return _told(lambda process: process.numbers())


def templates_list(include_cache_stats: bool = False, namespace: str | None = None) -> Mapping[str, Any]:
    """The namespaces that it serves, the templates that it found at its start, and its handlers."""
    return _told(lambda process: process.templates(namespace, include_cache_stats=include_cache_stats))


def cache_stats() -> Mapping[str, Any]:
    """How the templates in its memory fare: `total_entries`, `hits`, `misses`, `evictions`, `last_maintenance`."""
    stats = running_system().runtime.worker.plans.cache.stats()
    at = None if stats.last_maintenance is None else datetime.fromtimestamp(stats.last_maintenance, UTC)
    return {**asdict(stats), "last_maintenance": at}


def cache_clear() -> Mapping[str, Any]:
    """Forget them: each is read again when it is needed. `success` and `message`."""
    system = running_system()

    async def clear() -> int:
        return system.runtime.worker.plans.forget()

    return {"success": True, "message": f"forgot {system.app.wait_for(clear())} templates"}


def template_refresh(namespace: str, name: str, version: str) -> Mapping[str, Any]:
    """Read a registered template anew. `success` and `message`; a template that there is not is no success."""
    system = running_system()
    try:
        found = system.app.wait_for(system.runtime.worker.plans.refresh(namespace, name, version))
    except TaskerError as error:
        return {"success": False, "message": error.message}
    return {"success": True, "message": f"read {found.plan.id}"}


def template_get(namespace: str, name: str, version: str) -> Mapping[str, Any]:
    """One of them, as it was compiled. Raises `TemplateNotFound`."""
    return _told(lambda process: process.template(namespace, name, version))


def template_validate(namespace: str, name: str, version: str) -> Mapping[str, Any]:
    """Whether each of its steps has a handler here. Raises `TemplateNotFound`."""
    found = _told(lambda process: process.validation(namespace, name, version))
    named = {"namespace": namespace, "name": name, "version": version}
    return {**found, **named, "handler_count": len(found["step_handlers"]), "issues": found["errors"]}


def config() -> Mapping[str, Any]:
    """The settings in effect, secrets replaced; `metadata.redacted_fields` names those."""
    from tasker.settings.installed import settings_model
    from tasker.settings.redaction import redacted

    system = running_system()
    settings, hidden = redacted((system.configured.settings or settings_model()()).model_dump(mode="json"))
    source = os.environ.get("TASKER_CONFIG_PATH") or os.environ.get("TASKER_CONFIG_ROOT") or "defaults"
    metadata = {"timestamp": datetime.now(UTC), "source": source, "redacted_fields": hidden}
    return {"environment": system.environment, **settings, "metadata": metadata}


def environment() -> str:
    """The environment that the process runs in."""
    return running_system().environment


def _told(ask: Callable[[ProcessStatus], T]) -> T:
    """What the process answers, asked in its event loop."""
    system = running_system()

    async def answer() -> T:
        metrics = metrics_of(system.runtime.plugins, CATALOGUE)
        pool = system.app.original.health.pool
        return ask(ProcessStatus(system.observed, system.environment, pool["max"], metrics))

    return system.app.wait_for(answer())
