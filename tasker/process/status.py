"""Status of a process, without a web framework."""

from __future__ import annotations

import json
import logging
import signal
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from time import monotonic
from typing import Any

from tasker.dataclasses import dataclass
from tasker.errors import TemplateNotFound
from tasker.execution.completer import BUFFER
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.messaging.listening_modes import HealthStatus, ListeningHealth
from tasker.metrics import Metric
from tasker.process.metrics import PROCESS_CATALOGUE, histograms, samples
from tasker.process.observed import Buffer, EventCounts, ProcessSnapshot, WorkerLoad
from tasker.process.reloading import ReloadSignals
from tasker.process.runtime import Runtime
from tasker.services.fleet.metric_catalogue import exposition, families
from tasker.services.fleet.metrics import AccessCounts
from tasker.services.workflows.handlers import missing_callables
from tasker.settings.execution import Execution
from tasker.template.plan import Plan
from tasker.version import __version__

_log = logging.getLogger("tasker.process")


class StatusSignal(ReloadSignals):
    """Handler of SIGUSR1; without it the signal ends the process.

    Call `listen` as soon as the process starts: a signal that arrives before `answer_with` is answered then.
    """

    number = signal.SIGUSR1

    def answer_with(self, status: Callable[[], Mapping[str, object]]) -> None:
        """Log the fields that `status` returns, in the running event loop, at every SIGUSR1."""
        self.answer(lambda: log_status(status()))


def log_status(fields: Mapping[str, object]) -> None:
    """Log the fields on one line, without those that have no value."""
    _log.info("process_status %s", " ".join(f"{name}={value}" for name, value in fields.items() if value != ""))


CHECKED = {
    "database": "events",
    "command_processor": "services",
    "queue_processing": "events",
    "event_system": "events",
    "step_processing": "steps",
    "circuit_breakers": "breakers",
}
"""Published checks, each with the part of the process that it reports.

The part `events` stands for the database: nothing here queries it, but the process learns of work through it.
"""
NEEDED = ("database", "command_processor", "queue_processing")
StatusDocument = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """Status of one process. `connections` is its maximum number of database connections; `metrics` are those of
    plugins."""

    observed: ProcessSnapshot
    environment: str = Execution.environment
    connections: int = 0
    metrics: Sequence[Metric] = ()

    def basic(self, status: str | None = None) -> StatusDocument:
        """Return `status` (by default the worst status of the process's parts), `timestamp` and `worker_id`."""
        current_status = status or str(self.observed.process.health().status).lower()
        return {"status": current_status, "timestamp": datetime.now(UTC), "worker_id": self.observed.identity()}

    def ready(self) -> tuple[StatusDocument, str]:
        """Return the readiness checks and the reason why the process is not ready (empty if it is)."""
        checks = self._checks(NEEDED)
        ill = [name for name, check in checks.items() if check["status"] in ("unhealthy", "critical")]
        reason = (
            f"not ready: {', '.join(ill)}" if ill else "" if self.observed.running else "not ready: it starts or stops"
        )
        return {**self.basic("not_ready" if reason else "ready"), "checks": checks, "system_info": self.info()}, reason

    def detailed(self) -> StatusDocument:
        """Return the status of every part, with the reason if it is not healthy."""
        return {**self.basic(), "checks": self._checks(CHECKED), "system_info": self.info()}

    def info(self) -> StatusDocument:
        """Return version, environment and configuration of the process."""
        process = self.observed
        return {
            "version": __version__,
            "environment": self.environment,
            "uptime_seconds": max(0, round((datetime.now(UTC) - process.started_at).total_seconds())),
            "worker_type": process.kind,
            "database_pool_size": self.connections,
            "command_processor_active": process.running,
            "supported_namespaces": list(process.namespaces()),
        }

    def numbers(self, access: AccessCounts | None = None) -> str:
        """Return the metrics of the process and of access to its port in the Prometheus text format."""
        access = access or AccessCounts()
        text = exposition(PROCESS_CATALOGUE, [*samples(self.observed), *access.samples()])
        return text + families([*histograms(self.observed), access.verification, *self.metrics])

    def events(self) -> StatusDocument:
        """Return delivery counts of domain events since the start; every subscriber is reached through the channel."""
        counts = self.observed.events()
        return {
            "router": {
                "total_routed": sum(counts.routed.values()),
                **{f"{mode}_routed": counts.routed.get(mode, 0) for mode in ("durable", "fast", "broadcast")},
                "fast_delivery_errors": counts.failures,
                "routing_errors": counts.refused,
            },
            "in_process_bus": {
                "total_events_dispatched": counts.sent,
                "rust_handler_dispatches": 0,
                "ffi_channel_dispatches": counts.sent,
            },
            "captured_at": datetime.now(UTC),
            "worker_id": self.observed.identity(),
        }

    def cache(self) -> StatusDocument | None:
        """Return statistics of the template cache, or None without a cache."""
        if (cache := self.observed.cache) is None:
            return None
        stats = cache.stats()
        return {
            "total_cached": stats.total_entries,
            "cache_hits": stats.hits,
            "cache_misses": stats.misses,
            "cache_evictions": stats.evictions,
            "oldest_entry_age_seconds": round(cache.oldest_seconds),
            "average_access_count": cache.asked_each,
            "supported_namespaces": sorted({entry.plan.namespace for entry in cache.plans.values()}),
        }

    def templates(self, namespace: str | None = None, *, include_cache_stats: bool = False) -> StatusDocument:
        """Return the served namespaces, the templates found at the start, and the handlers."""
        plans = [plan for plan in self.observed.plans if namespace in (None, plan.namespace)]
        return {
            "supported_namespaces": list(self.observed.namespaces()),
            "template_count": len(plans),
            "worker_capabilities": list(self.observed.handlers()),
            "templates": [str(plan.id) for plan in plans],
            "cache_stats": self.cache() if include_cache_stats else None,
        }

    def template(self, namespace: str, name: str, version: str) -> StatusDocument:
        """Return the compiled form of a template found at the start. Raises `TemplateNotFound`."""
        plan = self.plan(namespace, name, version)
        metadata = {
            "namespace": namespace,
            "name": name,
            "version": version,
            "handler_class": plan.steps[0].handler.callable,
            "registered_at": self.observed.started_at,
        }
        entry = self.observed.cache.of(plan) if self.observed.cache else None
        return {
            "template": json.loads(plan.to_json()),
            "handler_metadata": metadata,
            "cached": entry is not None,
            "access_count": entry and entry.asked,
            "cache_age_seconds": entry and round(time.time() - entry.since),
        }

    def validation(self, namespace: str, name: str, version: str) -> StatusDocument:
        """Return whether each step of the template has a handler here. Raises `TemplateNotFound`."""
        plan = self.plan(namespace, name, version)
        handlers = sorted({step.handler.callable for step in plan.steps if step.has_handler})
        errors = [f"no handler {callable}" for callable in self.observed.missing(plan)]
        return {"valid": not errors, "errors": errors, "required_capabilities": handlers, "step_handlers": handlers}

    def plan(self, namespace: str, name: str, version: str) -> Plan:
        """Return the plan found at the start. Raises `TemplateNotFound`."""
        for plan in self.observed.plans:
            if (plan.namespace, plan.name, plan.version) == (namespace, name, version):
                return plan
        raise TemplateNotFound(f"this process found no template {namespace}/{name}:{version}", hint="see /v1/templates")

    def _checks(self, names: Collection[str]) -> dict[str, StatusDocument]:
        began, now = time.perf_counter(), datetime.now(UTC)
        areas = self.observed.areas()
        took_ms = round((time.perf_counter() - began) * 1000)
        return {name: _check(areas[CHECKED[name]], now, took_ms) for name in names}


def _check(health: ListeningHealth, now: datetime, took_ms: int) -> StatusDocument:
    status = "healthy" if health.status is HealthStatus.HEALTHY else str(health.status).lower()
    return {"status": status, "message": health.reason or None, "duration_ms": took_ms, "last_checked": now}


def observed_worker(runtime: Runtime, registry: HandlerRegistry, plans: Sequence[Plan]) -> ProcessSnapshot:
    """Return the snapshot of a worker with these handlers and discovered templates."""
    worker = runtime.worker

    def load() -> WorkerLoad:
        throttled_by, refusals = runtime.execution.throttled_by(), worker.slots.holds
        runner, slots, buffers = (
            runtime.execution.runner,
            runtime.settings.dispatch.max_concurrent_handlers,
            _buffers(runtime),
        )
        waiting = runner.waiting_since.values()
        waits_ms = (monotonic() - min(waiting)) * 1000 if waiting else 0.0
        busy, given_back = worker.busy, worker.released_count
        counts = (
            len(waiting),
            waits_ms,
            runner.waits(),
            worker.metrics.all(),
            buffers,
            _busy_in(runtime),
            runner.leaked_threads,
        )
        return WorkerLoad(slots, busy, given_back, throttled_by, refusals, *counts)

    return ProcessSnapshot(
        "worker",
        runtime,
        lambda: worker.identity,
        lambda: list(runtime.namespaces),
        registry.served_handlers,
        plans,
        lambda plan: [missing.callable for missing in missing_callables(registry, plan)],
        load,
        lambda: _events(runtime),
        worker.plans.cache,
    )


def status_of(observed: ProcessSnapshot) -> dict[str, object]:
    """Return the status of a worker or orchestrator for one line of the log."""
    load = observed.load()
    areas = {name: area for name, area in observed.areas().items() if area.status is not HealthStatus.HEALTHY}
    steps = {"busy": f"{load.busy}/{load.slots}", "waiting": load.waiting, "given_back": load.given_back}
    return {
        "process": observed.kind,
        "worker": observed.identity(),
        "running": observed.running,
        "up_seconds": round((datetime.now(UTC) - observed.started_at).total_seconds()),
        "namespaces": ",".join(observed.namespaces()),
        **(steps if load.slots else {}),
        "health": "; ".join(f"{name}: {area.reason}" for name, area in areas.items()) or "healthy",
    }


def _busy_in(runtime: Runtime) -> dict[str, int]:
    return {**dict.fromkeys(runtime.namespaces, 0), **runtime.worker.claims.by_namespace()}


def _events(runtime: Runtime) -> EventCounts:
    bus = runtime.execution.bus
    return EventCounts(bus.routed, runtime.worker.events.refused, bus.sent, bus.failures)


def _buffers(runtime: Runtime) -> tuple[Buffer, ...]:
    """Return the fill levels of a worker's buffers."""
    execution, slots = runtime.execution, runtime.worker.slots
    buffer, events = execution.buffer, execution.bus.channel
    return (
        Buffer("handler_dispatch", runtime.worker.busy, slots.concurrency),
        Buffer("completion", buffer.waiting, buffer.size, slots.holds[BUFFER]),
        Buffer("domain_events", len(events), events.capacity, events.dropped),
        Buffer(
            "subscribers", execution.bus.slowest, runtime.settings.subscribers.broadcast_buffer_size, execution.bus.lost
        ),
    )
