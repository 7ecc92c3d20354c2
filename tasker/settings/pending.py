"""Keys that are accepted and checked, and that no code reads yet: path -> the part that will read them.

Setting one to something other than its default prints a warning at the start. This list only shrinks: whoever writes
the reader takes the path out, and a test fails while a key here is read or a key elsewhere is not.
"""

from __future__ import annotations

from collections.abc import Mapping

_BACKPRESSURE = "backpressure"
_BREAKERS = "circuit breakers"
_DATABASE = "database pools"
_PROCESSES = "processes and deployment modes"

PENDING: Mapping[str, str] = {
    "common.circuit_breakers": _BREAKERS,
    "common.database.pool": _DATABASE,
    "common.mpsc_channels.overflow_policy": _BACKPRESSURE,
    "common.queues.pgmq.queue_depth_thresholds": _BACKPRESSURE,
    "common.task_templates": _PROCESSES,
    "orchestration.event_systems.orchestration": _PROCESSES,
    "orchestration.event_systems.task_readiness.deployment_mode": _PROCESSES,
    "orchestration.event_systems.task_readiness.health": _PROCESSES,
    "orchestration.event_systems.task_readiness.processing": _PROCESSES,
    "orchestration.event_systems.task_readiness.system_id": _PROCESSES,
    "orchestration.event_systems.task_readiness.timing.health_check_interval_seconds": _PROCESSES,
    "orchestration.event_systems.task_readiness.timing.processing_timeout_seconds": _PROCESSES,
    "orchestration.event_systems.task_readiness.timing.visibility_timeout_seconds": _PROCESSES,
    "orchestration.mpsc_channels": _BACKPRESSURE,
    "orchestration.shutdown_timeout_ms": _PROCESSES,
    "worker.circuit_breakers": _BREAKERS,
    "worker.event_systems.worker.deployment_mode": _PROCESSES,
    "worker.event_systems.worker.health": _PROCESSES,
    "worker.event_systems.worker.metadata.fallback_poller.age_threshold_seconds": _PROCESSES,
    "worker.event_systems.worker.metadata.fallback_poller.batch_size": _PROCESSES,
    "worker.event_systems.worker.metadata.fallback_poller.enabled": _PROCESSES,
    "worker.event_systems.worker.metadata.fallback_poller.max_age_hours": _PROCESSES,
    "worker.event_systems.worker.metadata.fallback_poller.supported_namespaces": _PROCESSES,
    "worker.event_systems.worker.metadata.fallback_poller.visibility_timeout_seconds": _PROCESSES,
    "worker.event_systems.worker.metadata.listener": _PROCESSES,
    "worker.event_systems.worker.processing": _PROCESSES,
    "worker.event_systems.worker.system_id": _PROCESSES,
    "worker.event_systems.worker.timing.health_check_interval_seconds": _PROCESSES,
    "worker.event_systems.worker.timing.processing_timeout_seconds": _PROCESSES,
    "worker.event_systems.worker.timing.visibility_timeout_seconds": _PROCESSES,
    "worker.mpsc_channels.command_processor": _BACKPRESSURE,
    "worker.mpsc_channels.event_listeners": _BACKPRESSURE,
    "worker.mpsc_channels.event_subscribers": _BACKPRESSURE,
    "worker.mpsc_channels.event_systems": _BACKPRESSURE,
    "worker.mpsc_channels.ffi_dispatch": _BACKPRESSURE,
    "worker.mpsc_channels.handler_dispatch.completion_buffer_size": _BACKPRESSURE,
    "worker.mpsc_channels.handler_dispatch.dispatch_buffer_size": _BACKPRESSURE,
    "worker.mpsc_channels.handler_dispatch.load_shedding": _BACKPRESSURE,
    "worker.worker_id": _PROCESSES,
    "worker.worker_type": _PROCESSES,
}
"""A path stands for everything below it."""
