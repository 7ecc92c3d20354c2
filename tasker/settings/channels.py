"""The bounded buffers between the parts of a process. Work blocks when one is full; domain events are dropped."""

from __future__ import annotations

from tasker.settings.table import Table, flag, number, table, whole


class EventPublisher(Table):
    """Domain events on their way to their publisher."""

    event_queue_buffer_size: int = whole(5000, 100, 100_000, "Events that wait at most.")


class SaturationMetrics(Table):
    """How full the buffers are, as metrics."""

    saturation_check_interval_seconds: int = whole(30, 1, 3600, "Period of the check.")


class OverflowPolicy(Table):
    """What is said when a buffer fills."""

    log_warning_threshold: float = number(
        0.8, 0, 1, "Fill level, as a share of the size, from which on it is warned of."
    )
    metrics: SaturationMetrics = table(SaturationMetrics)


class CommonChannels(Table):
    """Buffers that every process has."""

    event_publisher: EventPublisher = table(EventPublisher)
    overflow_policy: OverflowPolicy = table(OverflowPolicy)


class OrchestrationCommands(Table):
    """Commands to the orchestrator."""

    command_buffer_size: int = whole(
        5000, 100, 100_000, "Commands that wait at most.", advice="100 to 500 in tests, 2000 to 50000 in production."
    )


class OrchestrationListeners(Table):
    """Announcements of messages."""

    pgmq_event_buffer_size: int = whole(50_000, 1000, 1_000_000, "Announcements that wait at most.")


class OrchestrationEvents(Table):
    """From the listener to the processing."""

    event_channel_buffer_size: int = whole(10_000, 100, 100_000, "Events that wait at most.")


class OrchestrationChannels(Table):
    """Buffers of an orchestrator."""

    command_processor: OrchestrationCommands = table(OrchestrationCommands)
    event_listeners: OrchestrationListeners = table(OrchestrationListeners)
    event_systems: OrchestrationEvents = table(OrchestrationEvents)


class WorkerCommands(Table):
    """Commands to the worker."""

    command_buffer_size: int = whole(2000, 100, 100_000, "Commands that wait at most.")


class DomainEvents(Table):
    """Domain events of finished steps. Full: the event is dropped, the step is unaffected."""

    command_buffer_size: int = whole(
        1000, 100, 50_000, "Events that wait at most.", advice="100 in tests, 5000 in production."
    )
    log_dropped_events: bool = flag(True, "Log every dropped event.")
    shutdown_drain_timeout_ms: int = whole(5000, 100, 60_000, "How long the rest may take at the stop.")


class WorkerListeners(Table):
    """Announcements of messages."""

    pgmq_event_buffer_size: int = whole(10_000, 1000, 1_000_000, "Announcements that wait at most.")


class EventSubscribers(Table):
    """Results on their way to the database. Full: the worker waits, nothing is dropped."""

    completion_buffer_size: int = whole(1000, 100, 50_000, "Finished steps that wait at most.")
    result_buffer_size: int = whole(1000, 100, 50_000, "Results that wait at most.")


class WorkerEvents(Table):
    """From the listener to the processing."""

    event_channel_buffer_size: int = whole(2000, 100, 100_000, "Events that wait at most.")


class HandOff(Table):
    """Watching the way of a step to its handler."""

    starvation_warning_threshold_ms: int = whole(
        10_000, 1000, 300_000, "Warn of a step that waits longer for a thread."
    )
    callback_timeout_ms: int = whole(5000, 100, 60_000, "Limit of what is called after a step has ended.")


class LoadShedding(Table):
    """Claiming nothing more while the worker is busy; the messages stay for others."""

    enabled: bool = flag(True, "Refuse to claim above the threshold.")
    capacity_threshold_percent: float = number(80.0, 0, 100, "Busy share from which on nothing is claimed.")
    warning_threshold_percent: float = number(70.0, 0, 100, "Busy share from which on it is warned of.")


class HandlerDispatch(Table):
    """Running handlers."""

    max_concurrent_handlers: int = whole(
        10,
        1,
        10_000,
        "Steps that a worker runs at the same time.",
        advice="10 in tests, 50 in development, 500 in production. Blocking ones share worker.execution.threads.",
    )
    handler_timeout_ms: int = whole(
        30_000,
        1000,
        600_000,
        "Limit of one attempt where the template sets no timeout_seconds.",
        advice="An asynchronous handler is cancelled; a thread cannot be stopped and keeps its place until it ends.",
    )
    dispatch_buffer_size: int = whole(1000, 100, 50_000, "Claimed steps that wait for their handler at most.")
    completion_buffer_size: int = whole(1000, 100, 50_000, "Results that wait to be stored at most.")
    load_shedding: LoadShedding = table(LoadShedding)


class InProcessEvents(Table):
    """Events to subscribers in the same process. A slow or failing one never holds up a step."""

    broadcast_buffer_size: int = whole(2000, 100, 100_000, "Events that wait per subscriber at most.")
    dispatch_timeout_ms: int = whole(5000, 100, 60_000, "Limit of one subscriber for one event.")
    log_subscriber_errors: bool = flag(True, "Log what subscribers raise.")


class WorkerChannels(Table):
    """Buffers of a worker."""

    command_processor: WorkerCommands = table(WorkerCommands)
    domain_events: DomainEvents = table(DomainEvents)
    event_listeners: WorkerListeners = table(WorkerListeners)
    event_subscribers: EventSubscribers = table(EventSubscribers)
    event_systems: WorkerEvents = table(WorkerEvents)
    ffi_dispatch: HandOff = table(HandOff)
    handler_dispatch: HandlerDispatch = table(HandlerDispatch)
    in_process_events: InProcessEvents = table(InProcessEvents)
