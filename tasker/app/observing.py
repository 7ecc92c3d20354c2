"""Observable state of a worker, from its parts."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from time import monotonic

from tasker.api.process.observed import Buffer, EventCounts, ProcessSnapshot, WorkerLoad
from tasker.contracts.plan import Plan
from tasker.execution.completion_buffer import BUFFER
from tasker.handler import HandlerRegistry
from tasker.lifecycle.deployment import HealthStatus
from tasker.process.runtime import Runtime
from tasker.services.authoring.handlers import missing_callables


def observed_worker(runtime: Runtime, registry: HandlerRegistry, plans: Sequence[Plan]) -> ProcessSnapshot:
    """Return the snapshot of a worker with these handlers and discovered templates."""
    worker = runtime.worker

    def load() -> WorkerLoad:
        held_by, refusals = runtime.execution.held_by(), worker.slots.holds
        runner, slots, buffers = runtime.execution.runner, runtime.settings.concurrency, _buffers(runtime)
        waiting = runner.waiting_since.values()
        waits_ms = (monotonic() - min(waiting)) * 1000 if waiting else 0.0
        busy, given_back = worker.busy, worker.released_count
        counts = len(waiting), waits_ms, runner.waits(), buffers, _busy_in(runtime), runner.leaked_threads
        return WorkerLoad(slots, busy, given_back, held_by, refusals, *counts)

    return ProcessSnapshot(
        "worker",
        runtime,
        lambda: worker.identity,
        lambda: list(runtime.namespaces),
        registry.served_handlers,
        plans,
        lambda plan: [each.callable for each in missing_callables(registry, plan)],
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
        Buffer("subscribers", execution.bus.slowest, runtime.settings.subscribers.buffer, execution.bus.lost),
    )
