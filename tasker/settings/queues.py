"""Settings of queues: the backend, their names, buffers and depth limits."""

from __future__ import annotations

from typing import Annotated

from tasker.errors import InvalidQueueName
from tasker.settings.addresses import DEFAULT_BACKEND, check_queue_name
from tasker.settings.table import Check, Table, flag, number, refused, table, text, whole


def _orchestration_queue(value: str) -> str:
    try:
        name = check_queue_name(value)
    except InvalidQueueName as error:
        raise refused(f"Not the name of a queue: {error.message}", (error.hint or "").capitalize()) from None
    if name.startswith("orchestration"):
        return name
    raise refused(
        "Expected a name that begins with 'orchestration': orchestrators listen only for such queues",
        "Begin the name with 'orchestration'",
    )


OrchestrationQueue = Annotated[str, Check(_orchestration_queue)]


class OrchestrationQueues(Table):
    """Queues that orchestrators read. Their names begin with `orchestration`."""

    task_requests: OrchestrationQueue = text("orchestration_task_requests", "Tasks to create.")
    step_results: OrchestrationQueue = text(
        "orchestration_step_results", "Pointers to results that wait to be processed."
    )
    task_finalizations: OrchestrationQueue = text(
        "orchestration_task_finalizations", "Queue of tasks to be evaluated again."
    )


class DepthThresholds(Table):
    """Limits of a namespace's ready work with any backend: its steps that are enqueued, pending or paused."""

    critical_threshold: int = whole(
        5000,
        1,
        1_000_000_000,
        "Number of ready steps at which new tasks without priority are refused (503).",
        single_process=100_000,
    )
    overflow_threshold: int = whole(
        10_000,
        1,
        1_000_000_000,
        "Number of ready steps at which tasks of positive priority are refused too and an error is logged.",
        single_process=200_000,
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
        30,
        1,
        3600,
        "Time that a received message stays hidden before it is delivered again.",
        advice="Covers taking a message, not running its step: a step is protected by its worker's lease.",
    )
    poll_interval_ms: int = whole(500, 10, 10_000, "Polling interval when no notifications arrive.", live=True)
    orchestration_queues: OrchestrationQueues = table(OrchestrationQueues)
    queue_depth_thresholds: DepthThresholds = table(DepthThresholds)

    def tables(self) -> dict[str, Table]:
        """Return the tables of messaging backends by the backend's name (see `tasker.settings.installed_tables`)."""
        return {name: getattr(self, name) for name in self.declared if name not in QueueSettings.declared}


class EventPublisher(Table):
    """Buffer of domain events for their publisher."""

    event_queue_buffer_size: int = whole(5000, 100, 100_000, "Maximum number of waiting events.")


class SaturationMetrics(Table):
    """Metrics of the buffers' fill levels."""

    saturation_check_interval_seconds: int = whole(30, 1, 3600, "Period of the check.")


class OverflowPolicy(Table):
    """Warnings about full buffers."""

    log_warning_threshold: float = number(0.8, 0, 1, "Fill level (share of the size) at which a warning is logged.")
    metrics: SaturationMetrics = table(SaturationMetrics)


class CommonChannels(Table):
    """Buffers of every process."""

    event_publisher: EventPublisher = table(EventPublisher)
    overflow_policy: OverflowPolicy = table(OverflowPolicy)


class DomainEvents(Table):
    """Buffer of events for in-process subscribers. When full, events are dropped; steps are unaffected."""

    command_buffer_size: int = whole(
        1_000, 100, 50_000, "Maximum number of waiting events.", advice="100 in tests, 5000 in production."
    )
    log_dropped_events: bool = flag(True, "Log every dropped event.")
    shutdown_drain_timeout_ms: int = whole(5_000, 100, 60_000, "Time limit for the remaining events at shutdown.")


class HandOff(Table):
    """Monitoring of steps on their way to a handler."""

    starvation_warning_threshold_ms: int = whole(
        10_000, 1000, 300_000, "Log a warning if a step waits longer for a thread."
    )
    callback_timeout_ms: int = whole(
        5_000, 100, 60_000, "Time limit of a publisher that builds the payload of a domain event."
    )


class HandlerDispatch(Table):
    """Execution of handlers."""

    max_concurrent_handlers: int = whole(
        10,
        1,
        10_000,
        "Steps that a worker runs at the same time.",
        advice="10 in tests, 50 in development, 500 in production. Blocking ones share worker.execution.threads.",
        single_process=200,
    )
    handler_timeout_ms: int = whole(
        30_000,
        1000,
        600_000,
        "Time limit of an attempt if the template sets no timeout_seconds.",
        advice="An async handler is cancelled; a thread cannot be stopped and occupies its slot until it ends.",
    )
    completion_buffer_size: int = whole(
        1000,
        100,
        50_000,
        "Number of results waiting to be stored at which the worker stops claiming. Results are never dropped.",
        advice="Above max_concurrent_handlers + 500 (the size of one write): 2000 in production. "
        "Otherwise bursts of short steps throttle claims repeatedly.",
    )


class InProcessEvents(Table):
    """Delivery of events to in-process subscribers. Slow or failing subscribers never delay a step."""

    broadcast_buffer_size: int = whole(
        2_000,
        100,
        100_000,
        "Maximum number of events waiting for one subscriber; more are dropped for it.",
    )
    dispatch_timeout_ms: int = whole(
        5_000,
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
