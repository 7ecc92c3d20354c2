"""Settings of queues: the backend, their names, buffers and depth limits."""

from __future__ import annotations

from tasker.settings.addresses import DEFAULT_BACKEND
from tasker.settings.defaults import (
    BUFFER_WARNING_SHARE,
    COMPLETION_BUFFER,
    CONCURRENCY,
    CRITICAL_DEPTH,
    EVENT_BUFFER,
    EVENT_DRAIN_MS,
    LOST_POLL_MS,
    OVERFLOW_DEPTH,
    PUBLISHER_TIMEOUT_MS,
    STARVATION_MS,
    STEP_RESULTS_QUEUE,
    STEP_TIMEOUT_MS,
    SUBSCRIBER_BUFFER,
    SUBSCRIBER_TIMEOUT_MS,
    TASK_FINALIZATIONS_QUEUE,
    TASK_REQUESTS_QUEUE,
    VISIBILITY_TIMEOUT_SECONDS,
)
from tasker.settings.formats import OrchestrationQueue
from tasker.settings.table import Table, flag, number, table, text, whole


class OrchestrationQueues(Table):
    """Queues that orchestrators read. Their names begin with `orchestration`."""

    task_requests: OrchestrationQueue = text(TASK_REQUESTS_QUEUE, "Tasks to create.")
    step_results: OrchestrationQueue = text(STEP_RESULTS_QUEUE, "Pointers to results that wait to be processed.")
    task_finalizations: OrchestrationQueue = text(TASK_FINALIZATIONS_QUEUE, "Queue of tasks to be evaluated again.")


class DepthThresholds(Table):
    """Limits of a namespace's ready work with any backend: its steps that are enqueued, pending or paused."""

    critical_threshold: int = whole(
        CRITICAL_DEPTH, 1, 1_000_000_000, "Number of ready steps at which new tasks without priority are refused (503)."
    )
    overflow_threshold: int = whole(
        OVERFLOW_DEPTH,
        1,
        1_000_000_000,
        "Number of ready steps at which tasks of positive priority are refused too and an error is logged.",
    )


class QueueSettings(Table):
    """Messaging, which only announces work. The database decides, whichever backend is used."""

    backend: str = text(
        DEFAULT_BACKEND,
        "Name of the messaging backend.",
        variable="TASKER_MESSAGING_BACKEND",
        advice=f"{DEFAULT_BACKEND} needs only the database. Change it to use an existing broker, or for throughput.",
    )
    default_visibility_timeout_seconds: int = whole(
        VISIBILITY_TIMEOUT_SECONDS,
        1,
        3600,
        "Time that a received message stays hidden before it is delivered again.",
        advice="Covers taking a message, not running its step: a step is protected by its worker's lease.",
    )
    poll_interval_ms: int = whole(LOST_POLL_MS, 10, 10_000, "Polling interval when no notifications arrive.")
    orchestration_queues: OrchestrationQueues = table(OrchestrationQueues)
    queue_depth_thresholds: DepthThresholds = table(DepthThresholds)

    def tables(self) -> dict[str, Table]:
        """Return the tables of messaging backends by the backend's name (see `tasker.settings.installed_tables`)."""
        return {name: getattr(self, name) for name in type(self).model_fields if name not in QueueSettings.model_fields}


class EventPublisher(Table):
    """Buffer of domain events for their publisher."""

    event_queue_buffer_size: int = whole(5000, 100, 100_000, "Maximum number of waiting events.")


class SaturationMetrics(Table):
    """Metrics of the buffers' fill levels."""

    saturation_check_interval_seconds: int = whole(30, 1, 3600, "Period of the check.")


class OverflowPolicy(Table):
    """Warnings about full buffers."""

    log_warning_threshold: float = number(
        BUFFER_WARNING_SHARE, 0, 1, "Fill level (share of the size) at which a warning is logged."
    )
    metrics: SaturationMetrics = table(SaturationMetrics)


class CommonChannels(Table):
    """Buffers of every process."""

    event_publisher: EventPublisher = table(EventPublisher)
    overflow_policy: OverflowPolicy = table(OverflowPolicy)


class DomainEvents(Table):
    """Buffer of events for in-process subscribers. When full, events are dropped; steps are unaffected."""

    command_buffer_size: int = whole(
        EVENT_BUFFER, 100, 50_000, "Maximum number of waiting events.", advice="100 in tests, 5000 in production."
    )
    log_dropped_events: bool = flag(True, "Log every dropped event.")
    shutdown_drain_timeout_ms: int = whole(
        EVENT_DRAIN_MS, 100, 60_000, "Time limit for the remaining events at shutdown."
    )


class HandOff(Table):
    """Monitoring of steps on their way to a handler."""

    starvation_warning_threshold_ms: int = whole(
        STARVATION_MS, 1000, 300_000, "Log a warning if a step waits longer for a thread."
    )
    callback_timeout_ms: int = whole(
        PUBLISHER_TIMEOUT_MS, 100, 60_000, "Time limit of a publisher that builds the payload of a domain event."
    )


class HandlerDispatch(Table):
    """Execution of handlers."""

    max_concurrent_handlers: int = whole(
        CONCURRENCY,
        1,
        10_000,
        "Steps that a worker runs at the same time.",
        advice="10 in tests, 50 in development, 500 in production. Blocking ones share worker.execution.threads.",
    )
    handler_timeout_ms: int = whole(
        STEP_TIMEOUT_MS,
        1000,
        600_000,
        "Time limit of an attempt if the template sets no timeout_seconds.",
        advice="An async handler is cancelled; a thread cannot be stopped and occupies its slot until it ends.",
    )
    completion_buffer_size: int = whole(
        COMPLETION_BUFFER,
        100,
        50_000,
        "Number of results waiting to be stored at which the worker stops claiming. Results are never dropped.",
        advice="Above max_concurrent_handlers + 500 (the size of one write): 2000 in production. "
        "Otherwise bursts of short steps throttle claims repeatedly.",
    )


class InProcessEvents(Table):
    """Delivery of events to in-process subscribers. Slow or failing subscribers never delay a step."""

    broadcast_buffer_size: int = whole(
        SUBSCRIBER_BUFFER,
        100,
        100_000,
        "Maximum number of events waiting for one subscriber; more are dropped for it.",
    )
    dispatch_timeout_ms: int = whole(
        SUBSCRIBER_TIMEOUT_MS,
        100,
        60_000,
        "A subscriber that takes longer for one event is logged. It does not delay other subscribers.",
    )
    log_subscriber_errors: bool = flag(True, "Log exceptions of subscribers; they are always counted.")


class WorkerChannels(Table):
    """Buffers of a worker."""

    domain_events: DomainEvents = table(DomainEvents)
    ffi_dispatch: HandOff = table(HandOff)
    handler_dispatch: HandlerDispatch = table(HandlerDispatch)
    in_process_events: InProcessEvents = table(InProcessEvents)
