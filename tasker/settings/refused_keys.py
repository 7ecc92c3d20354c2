"""Keys that are refused: those of other systems and reserved ones, each with what to use instead.

Their types, ranges and defaults are defined, so that the names get no other meaning. Accepting them would suggest a
function that does not exist.
"""

from __future__ import annotations

from collections.abc import Mapping

_QUEUE_NAMES = "Queues are named worker_NAMESPACE_queue, and SQL relies on it; remove the setting"
_CLAIM = (
    "A claim ends with its worker's lease, or when its step's time is up; use worker.lease.lease_ms and "
    "worker.lease.grace_ms"
)
_COMMANDS = "There is no command queue: work stays in the database until it is taken; remove the setting"
_ANNOUNCED = (
    "A notification only wakes the reader of the queue and is not buffered, so it has no limit; remove this setting"
)
_ONE_BUFFER = "Results wait in one buffer; use worker.mpsc_channels.handler_dispatch.completion_buffer_size"
_FFI = "Handlers are called directly, there is no bridge to another language"
_OLD_MODE = "Set deployment_mode and timing of orchestration.event_systems.* and worker.event_systems.worker"
_HIDDEN = "The visibility timeout is the same for all receivers; use common.queues.default_visibility_timeout_seconds"
_WAITS = "Polling a queue is one database call, limited by common.database.statement_timeout_ms"
_HINTS = (
    "An event only signals possible work: it is not retried, and simultaneous events cause one poll; use "
    "max_concurrent_handlers, and `retry` in a template for steps"
)
_SEARCH = (
    "The search for work without a message is periodic in every process and mode; use "
    "orchestration.event_systems.task_readiness.timing.fallback_polling_interval_seconds and common.sweep"
)
_AGE = "Messages have no age limits: the row in the database decides whether a message is valid; remove the setting"
_LIMITS = "Memory and processor time are limited by the system that starts the process (container, systemd)"

_ROOTS = ("common", "orchestration", "worker")
_POOLS = (
    "There are no pools of executors: an orchestrator works in one event loop, and a worker runs steps in its slots; "
    "use worker.mpsc_channels.handler_dispatch.max_concurrent_handlers, worker.execution.threads, and more processes"
)
_HEALTH = (
    "A process judges its own health; use health and timing.health_check_interval_seconds of "
    "{root}.event_systems.{root}"
)

REFUSED: Mapping[str, str] = {
    "common.cache.key_prefix": "Cache keys begin with tasker:; remove the setting",
    "common.cache.memcached": "Memcached is not supported; use backend redis or moka",
    "common.database.adapter": "The database is always PostgreSQL; remove the setting",
    "common.execution.step_enqueue_batch_size": (
        "Steps that become ready together are enqueued together; common.execution.enqueue_window bounds how many wait"
    ),
    "common.mpsc_channels.ffi": _FFI,
    "common.pgmq_database": (
        "Queues in PostgreSQL are in the engine's database, so that messages are sent transactionally; to reduce "
        "the load of the database choose another common.queues.backend"
    ),
    "common.queues.naming_pattern": _QUEUE_NAMES,
    "common.queues.orchestration_namespace": _QUEUE_NAMES,
    "common.queues.worker_namespace": _QUEUE_NAMES,
    "common.system": "External systems are named where steps use them; use circuit_breaker.name in the template",
    **dict.fromkeys(("executor_pools", *(f"{root}.executor_pools" for root in _ROOTS)), _POOLS),
    **{f"{root}.health": _HEALTH.format(root=root) for root in ("orchestration", "worker")},
    "orchestration.batch_processing.default_batch_size": (
        "A batchable handler decides how to divide its work; use handler.initialization in the template, which it reads"
    ),
    "orchestration.batch_processing.max_parallel_batches": (
        "Batches run as far as workers have free slots; use max_concurrent_handlers and common.execution.enqueue_window"
    ),
    "orchestration.deployment_mode": "Each event system has its own; use orchestration.event_systems.*.deployment_mode",
    "orchestration.event_driven": _OLD_MODE,
    "orchestration.event_systems.orchestration.processing": _HINTS,
    "orchestration.event_systems.orchestration.timing.claim_timeout_seconds": _CLAIM,
    "orchestration.event_systems.orchestration.timing.processing_timeout_seconds": _WAITS,
    "orchestration.event_systems.orchestration.timing.visibility_timeout_seconds": _HIDDEN,
    "orchestration.event_systems.task_readiness.deployment_mode": _SEARCH,
    "orchestration.event_systems.task_readiness.health": _SEARCH,
    "orchestration.event_systems.task_readiness.processing": _SEARCH,
    "orchestration.event_systems.task_readiness.system_id": _SEARCH,
    "orchestration.event_systems.task_readiness.timing.claim_timeout_seconds": _CLAIM,
    "orchestration.event_systems.task_readiness.timing.health_check_interval_seconds": _SEARCH,
    "orchestration.event_systems.task_readiness.timing.processing_timeout_seconds": _WAITS,
    "orchestration.event_systems.task_readiness.timing.visibility_timeout_seconds": _HIDDEN,
    "orchestration.hybrid": _OLD_MODE,
    "orchestration.max_concurrent_tasks": "Tasks are not limited; common.execution.enqueue_window bounds their steps",
    "orchestration.mpsc_channels": (
        "An orchestrator has no internal buffers: work stays in the database until it is taken"
    ),
    "orchestration.polling": _OLD_MODE,
    "orchestration.task_timeout_seconds": (
        "Use orchestration.dlq.staleness_detection.thresholds, or `lifecycle` in a template"
    ),
    "orchestration.worker_events": _OLD_MODE,
    "worker.event_systems.worker.metadata.fallback_poller.age_threshold_seconds": _AGE,
    "worker.event_systems.worker.metadata.fallback_poller.batch_size": _HINTS,
    "worker.event_systems.worker.metadata.fallback_poller.max_age_hours": _AGE,
    "worker.event_systems.worker.metadata.fallback_poller.visibility_timeout_seconds": _HIDDEN,
    "worker.event_systems.worker.metadata.in_process_events.ffi_integration_enabled": _FFI,
    "worker.event_systems.worker.metadata.listener.batch_processing": _HINTS,
    "worker.event_systems.worker.processing": _HINTS,
    "worker.event_systems.worker.timing.claim_timeout_seconds": _CLAIM,
    "worker.event_systems.worker.timing.processing_timeout_seconds": _WAITS,
    "worker.event_systems.worker.timing.visibility_timeout_seconds": _HIDDEN,
    "worker.max_concurrent_steps": "Use worker.mpsc_channels.handler_dispatch.max_concurrent_handlers",
    "worker.mpsc_channels.command_processor": _COMMANDS,
    "worker.mpsc_channels.event_listeners": _ANNOUNCED,
    "worker.mpsc_channels.event_subscribers": _ONE_BUFFER,
    "worker.mpsc_channels.event_systems": _ANNOUNCED,
    "worker.mpsc_channels.ffi_dispatch.completion_send_timeout_ms": f"{_FFI}; a result waits until it is stored",
    "worker.mpsc_channels.ffi_dispatch.completion_timeout_ms": f"{_FFI}; use handler_dispatch.handler_timeout_ms",
    "worker.mpsc_channels.ffi_dispatch.dispatch_buffer_size": f"{_FFI}; use handler_dispatch.max_concurrent_handlers",
    "worker.mpsc_channels.handler_dispatch.dispatch_buffer_size": (
        "Claims never exceed free slots, so there is no such buffer; remove the setting"
    ),
    "worker.mpsc_channels.handler_dispatch.load_shedding": (
        "A worker never claims more steps than it has free slots, so reserving slots has no benefit; use "
        "worker.mpsc_channels.handler_dispatch.max_concurrent_handlers"
    ),
    "worker.resource_limits": _LIMITS,
    "worker.template_path": "Use common.task_templates.search_paths",
    "worker.worker_type": "Workers differ by what they serve; use worker.worker_id for a display name",
}
"""A path includes everything below it."""


_EVENTS = "a queue in front of the publishers of domain events, which are called while the result is processed"
_GRPC = "the gRPC API"
_CACHE = "a cache of analytics, which are read each time (docs/decisions/0027)"
_PERIODS = "metrics collected at intervals; Tasker counts events as they happen"
_WEB = "connections of a worker for requests, none of which query the database"

RESERVED: Mapping[str, str] = {
    "common.cache": _CACHE,
    "common.circuit_breakers.component_configs.cache": _CACHE,
    "common.circuit_breakers.global_settings.metrics_collection_interval_seconds": _PERIODS,
    "common.mpsc_channels.event_publisher": _EVENTS,
    "common.mpsc_channels.overflow_policy.metrics": _PERIODS,
    "orchestration.decision_points.enable_metrics": "metrics that are turned off one by one",
    "orchestration.enable_performance_logging": "lines of the log for each phase of a task",
    "orchestration.grpc": _GRPC,
    "worker.grpc": _GRPC,
    "worker.orchestration_client": "workers without a database",
    "worker.web.database_pools": _WEB,
}
"""A path includes everything below it."""
