"""Status of a process, reported over its port or to the same program; needs no web framework."""

from __future__ import annotations

import json
import time
from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

from tasker.api.process.metrics import CATALOGUE, histograms, samples
from tasker.api.process.observed import ProcessSnapshot
from tasker.contracts.dataclasses import dataclass
from tasker.contracts.defaults import ENVIRONMENT
from tasker.contracts.metrics import Metric
from tasker.contracts.plan import Plan
from tasker.errors import TemplateNotFound
from tasker.lifecycle.deployment import HealthStatus, ListeningHealth
from tasker.services.server.exposition import exposition, families
from tasker.services.server.metrics import AccessCounts
from tasker.version import __version__

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
Told = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ProcessStatus:
    """Status of one process. `connections` is its maximum number of database connections; `metrics` are those of
    plugins."""

    observed: ProcessSnapshot
    environment: str = ENVIRONMENT
    connections: int = 0
    metrics: Sequence[Metric] = ()

    def basic(self, status: str | None = None) -> Told:
        """Return `status` (by default the worst status of the process's parts), `timestamp` and `worker_id`."""
        found = status or str(self.observed.process.health().status).lower()
        return {"status": found, "timestamp": datetime.now(UTC), "worker_id": self.observed.identity()}

    def ready(self) -> tuple[Told, str]:
        """Return the readiness checks and the reason why the process is not ready (empty if it is)."""
        checks = self._checks(NEEDED)
        ill = [name for name, check in checks.items() if check["status"] in ("unhealthy", "critical")]
        reason = (
            f"not ready: {', '.join(ill)}" if ill else "" if self.observed.running else "not ready: it starts or stops"
        )
        return {**self.basic("not_ready" if reason else "ready"), "checks": checks, "system_info": self.info()}, reason

    def detailed(self) -> Told:
        """Return the status of every part, with the reason if it is not healthy."""
        return {**self.basic(), "checks": self._checks(CHECKED), "system_info": self.info()}

    def info(self) -> Told:
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
        own = exposition(CATALOGUE, [*samples(self.observed), *access.samples()])
        return own + families([*histograms(self.observed), access.verification, *self.metrics])

    def events(self) -> Told:
        """Return delivery counts of domain events since the start; every subscriber is reached through the channel."""
        found = self.observed.events()
        return {
            "router": {
                "total_routed": sum(found.routed.values()),
                **{f"{mode}_routed": found.routed.get(mode, 0) for mode in ("durable", "fast", "broadcast")},
                "fast_delivery_errors": found.failures,
                "routing_errors": found.refused,
            },
            "in_process_bus": {
                "total_events_dispatched": found.sent,
                "rust_handler_dispatches": 0,
                "ffi_channel_dispatches": found.sent,
            },
            "captured_at": datetime.now(UTC),
            "worker_id": self.observed.identity(),
        }

    def cache(self) -> Told | None:
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
            "supported_namespaces": sorted({each.plan.namespace for each in cache.plans.values()}),
        }

    def templates(self, namespace: str | None = None, *, include_cache_stats: bool = False) -> Told:
        """Return the served namespaces, the templates found at the start, and the handlers."""
        plans = [plan for plan in self.observed.plans if namespace in (None, plan.namespace)]
        return {
            "supported_namespaces": list(self.observed.namespaces()),
            "template_count": len(plans),
            "worker_capabilities": list(self.observed.handlers()),
            "templates": [str(plan.id) for plan in plans],
            "cache_stats": self.cache() if include_cache_stats else None,
        }

    def template(self, namespace: str, name: str, version: str) -> Told:
        """Return the compiled form of a template found at the start. Raises `TemplateNotFound`."""
        plan = self.plan(namespace, name, version)
        metadata = {
            "namespace": namespace,
            "name": name,
            "version": version,
            "handler_class": plan.steps[0].handler.callable,
            "registered_at": self.observed.started_at,
        }
        kept = self.observed.cache.of(plan) if self.observed.cache else None
        return {
            "template": json.loads(plan.to_json()),
            "handler_metadata": metadata,
            "cached": kept is not None,
            "access_count": kept and kept.asked,
            "cache_age_seconds": kept and round(time.time() - kept.since),
        }

    def validation(self, namespace: str, name: str, version: str) -> Told:
        """Return whether each step of the template has a handler here. Raises `TemplateNotFound`."""
        plan = self.plan(namespace, name, version)
        handlers = sorted({step.handler.callable for step in plan.steps})
        errors = [f"no handler {callable}" for callable in self.observed.missing(plan)]
        return {"valid": not errors, "errors": errors, "required_capabilities": handlers, "step_handlers": handlers}

    def plan(self, namespace: str, name: str, version: str) -> Plan:
        """Return the plan found at the start. Raises `TemplateNotFound`."""
        for plan in self.observed.plans:
            if (plan.namespace, plan.name, plan.version) == (namespace, name, version):
                return plan
        raise TemplateNotFound(f"this process found no template {namespace}/{name}:{version}", hint="see /v1/templates")

    def _checks(self, names: Collection[str]) -> dict[str, Told]:
        began, now = time.perf_counter(), datetime.now(UTC)
        areas = self.observed.areas()
        took_ms = round((time.perf_counter() - began) * 1000)
        return {name: _check(areas[CHECKED[name]], now, took_ms) for name in names}


def _check(health: ListeningHealth, now: datetime, took_ms: int) -> Told:
    status = "healthy" if health.status is HealthStatus.HEALTHY else str(health.status).lower()
    return {"status": status, "message": health.reason or None, "duration_ms": took_ms, "last_checked": now}
