"""Metrics of a process under alternative published names; each equals the metric named in its description."""

from __future__ import annotations

from collections.abc import Iterator

from tasker.messaging.listening_modes import Tally
from tasker.process.observed import Buffer, WorkerLoad
from tasker.resilience.breaker import BreakerReading
from tasker.resilience.breakers import Breakers
from tasker.services.fleet.metric_catalogue import Catalogue, Described, Sample
from tasker.services.fleet.metrics import BREAKER_STATES

SATURATIONS = {
    "handler_dispatch": ("worker_dispatch_channel_saturation",),
    "completion": ("worker_completion_channel_saturation", "tasker_channel_completion_saturation"),
}
CATALOGUE: Catalogue = {
    "messaging_circuit_breaker_state": Described(
        "gauge", 'tasker_circuit_breaker_state{component="messaging"}; 0 where the database sends them.'
    ),
    "messaging_circuit_breaker_rejections_total": Described(
        "counter", 'tasker_circuit_breaker_rejections_total{component="messaging"}.'
    ),
    "ffi_completion_circuit_open_rejections_total": Described(
        "counter", 'tasker_circuit_breaker_rejections_total{component="completion"}: results that had to wait for it.'
    ),
    "mpsc_channel_saturation": Described(
        "gauge", "mpsc_channel_usage_percent as a number from 0 to 1.", ("channel", "component")
    ),
    "worker_dispatch_channel_saturation": Described("gauge", 'mpsc_channel_saturation{channel="handler_dispatch"}.'),
    "worker_completion_channel_saturation": Described("gauge", 'mpsc_channel_saturation{channel="completion"}.'),
    "tasker_channel_completion_saturation": Described("gauge", 'mpsc_channel_saturation{channel="completion"}.'),
    "domain_events_dropped_total": Described("counter", 'mpsc_channel_full_events_total{channel="domain_events"}.'),
    "worker_handler_semaphore_permits_available": Described(
        "gauge", "tasker_steps_slots without the sum of tasker_steps_active_executions."
    ),
    "tasker_ffi_pending_events": Described("gauge", "Claimed steps that wait for a thread or a child process."),
    "tasker_ffi_oldest_event_age_ms": Described("gauge", "worker_handler_semaphore_wait_oldest_ms."),
    "tasker_worker_events_processed_total": Described("counter", "Polls of queues that returned work."),
    "tasker_worker_events_failed_total": Described("counter", "tasker_polling_errors_total."),
}


def of_breakers(breakers: Breakers) -> Iterator[Sample]:
    """Return the metrics of breakers that have names of their own."""
    readings: dict[str, BreakerReading] = {reading.name: reading for reading in breakers.readings()}
    messaging, completion = readings.get("messaging"), readings.get("completion")
    yield Sample("messaging_circuit_breaker_state", BREAKER_STATES[messaging.state] if messaging else 0)
    yield Sample("messaging_circuit_breaker_rejections_total", messaging.counts.refused if messaging else 0)
    yield Sample("ffi_completion_circuit_open_rejections_total", completion.counts.refused if completion else 0)


def of_load(load: WorkerLoad) -> Iterator[Sample]:
    """Return the metrics of a worker's load."""
    yield Sample("worker_handler_semaphore_permits_available", max(0, load.slots - load.busy))
    yield Sample("tasker_ffi_pending_events", load.waiting)
    yield Sample("tasker_ffi_oldest_event_age_ms", load.waits_ms)
    for buffer in load.buffers:
        yield from _of_buffer(buffer)


def _of_buffer(buffer: Buffer) -> Iterator[Sample]:
    share = buffer.waiting / max(1, buffer.capacity)
    yield Sample("mpsc_channel_saturation", share, {"channel": buffer.channel, "component": "worker"})
    yield from (Sample(name, share) for name in SATURATIONS.get(buffer.channel, ()))
    if buffer.channel == "domain_events":
        yield Sample("domain_events_dropped_total", buffer.full or 0)


def of_polls(tally: Tally) -> Iterator[Sample]:
    """Return the metrics of queue polls."""
    yield Sample("tasker_worker_events_processed_total", tally.processed)
    yield Sample("tasker_worker_events_failed_total", tally.failed)
