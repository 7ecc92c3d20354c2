"""Keys of similar systems that have no meaning in Tasker: path -> reason and alternative."""

from __future__ import annotations

from collections.abc import Mapping

_QUEUE_NAMES = "Queues are named after their namespace, worker_NAMESPACE_queue, and SQL relies on it; leave it out"
_CLAIM = (
    "A claim ends with its worker's lease, or when its step's time is up; use worker.lease.lease_ms and "
    "worker.lease.grace_ms"
)
_COMMANDS = "There is no queue of commands: what is to be done stays in the database until it is taken; leave it out"
_ANNOUNCED = (
    "An announcement wakes whoever looks into the queue and is not kept: there is nothing to bound; leave it out"
)
_ONE_BUFFER = "Results wait in one buffer; use worker.mpsc_channels.handler_dispatch.completion_buffer_size"
_FFI = "Handlers are called directly, there is no bridge to another language"
_OLD_MODE = "Set deployment_mode and timing of orchestration.event_systems.* and worker.event_systems.worker"
_HIDDEN = (
    "A received message stays hidden equally long, whoever receives it; use "
    "common.queues.default_visibility_timeout_seconds"
)
_WAITS = "Looking at a queue is one call to the database; its limit is common.database.statement_timeout_ms"
_HINTS = (
    "An event only says that there may be work, so it is neither repeated nor set aside, and what comes together is "
    "one look that takes what fits; use max_concurrent_handlers, and `retry` in a template for steps"
)
_SEARCH = (
    "The search for what no message announced goes by time in every process and mode; use "
    "orchestration.event_systems.task_readiness.timing.fallback_polling_interval_seconds and common.sweep"
)
_AGE = "A message is never too young or too old: the row in the database says whether it still counts; leave it out"
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
    "common.cache.key_prefix": "Keys of the cache begin with tasker:; leave it out",
    "common.cache.memcached": "There is no memcached cache; use backend redis or moka",
    "common.database.adapter": "The database is always PostgreSQL; leave it out",
    "common.execution.step_enqueue_batch_size": (
        "Steps that become ready together are enqueued together; common.execution.enqueue_window bounds how many wait"
    ),
    "common.mpsc_channels.ffi": _FFI,
    "common.pgmq_database": (
        "Queues in PostgreSQL are in the engine's database, so that a message is sent in the transaction that makes it "
        "true; to take load off the database choose another common.queues.backend"
    ),
    "common.queues.naming_pattern": _QUEUE_NAMES,
    "common.queues.orchestration_namespace": _QUEUE_NAMES,
    "common.queues.worker_namespace": _QUEUE_NAMES,
    "common.system": "Outside systems are named where steps use them; use circuit_breaker.name in the template",
    **dict.fromkeys(("executor_pools", *(f"{root}.executor_pools" for root in _ROOTS)), _POOLS),
    **{f"{root}.health": _HEALTH.format(root=root) for root in ("orchestration", "worker")},
    "orchestration.batch_processing.default_batch_size": (
        "A batchable handler decides how it cuts; use handler.initialization in the template, which it reads"
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
        "An orchestrator keeps nothing between its parts: what is to be done stays in the database until it takes it"
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
        "Claims never exceed free slots: a claimed step starts at once, there is no such buffer; leave it out"
    ),
    "worker.mpsc_channels.handler_dispatch.load_shedding": (
        "A worker never claims more than it has free slots for, and a share of them left idle would serve nobody; use "
        "worker.mpsc_channels.handler_dispatch.max_concurrent_handlers"
    ),
    "worker.resource_limits": _LIMITS,
    "worker.template_path": "Use common.task_templates.search_paths",
    "worker.worker_type": "Workers differ by what they serve; use worker.worker_id for a name that people read",
}
"""A path includes everything below it."""
