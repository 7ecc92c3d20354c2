"""Bounded buffers between the parts of a process. When full, no more work is accepted; domain events are dropped."""

from __future__ import annotations

from tasker.contracts.defaults import STARVATION_MS, STEP_TIMEOUT_MS
from tasker.contracts.defaults.pressure import BUFFER_WARNING_SHARE, COMPLETION_BUFFER
from tasker.contracts.defaults.workers import (
    CONCURRENCY,
    EVENT_BUFFER,
    EVENT_DRAIN_MS,
    PUBLISHER_TIMEOUT_MS,
    SUBSCRIBER_BUFFER,
    SUBSCRIBER_TIMEOUT_MS,
)
from tasker.contracts.settings import Table, flag, number, table, whole


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
