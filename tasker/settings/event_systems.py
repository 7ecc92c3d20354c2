"""`*.event_systems.*`: how a process learns of work: by notification, by polling, or both (A-73 .. A-79)."""

from __future__ import annotations

from typing import Literal

from tasker.settings.table import Table, choice, flag, number, several, table, text, whole

Mode = Literal["Hybrid", "EventDrivenOnly", "PollingOnly"]
_MODE = "`Hybrid`: notifications, and polling below them; `EventDrivenOnly`; `PollingOnly`."
_MODE_ADVICE = "Hybrid, unless a connection pooler breaks LISTEN (then PollingOnly)."
_SYSTEM_ID = "Label in logs and metrics."
_POLL = "Period of the polling below the notifications."
_BATCH = "Messages that one read takes."
_CONCURRENT = "Events processed at the same time."


class Health(Table):
    """When the part counts as unhealthy."""

    enabled: bool = flag(True, "Keep count of errors.")
    max_consecutive_errors: int = whole(10, 1, 1000, "Errors in a row; any success starts the count again.")
    error_rate_threshold_per_minute: int = whole(20, 1, 10_000, "Errors per minute.")
    performance_monitoring_enabled: bool = flag(True, "Measure latency and throughput.")


class EventBackoff(Table):
    """Repeating the processing of an event; not the retries of steps."""

    initial_delay_ms: int = whole(100, 1, 3_600_000, "First delay.")
    max_delay_ms: int = whole(10_000, 1, 3_600_000, "Longest delay.")
    multiplier: float = number(2.0, 1, 10, "Growth with each repetition.")
    jitter_percent: float = number(0.1, 0, 1, "Share of the delay that is added or taken away at most.")


class Timing(Table):
    """Periods and limits."""

    fallback_polling_interval_seconds: int = whole(5, 1, 60, _POLL)
    visibility_timeout_seconds: int = whole(30, 1, 3600, "How long a received message stays hidden.")
    processing_timeout_seconds: int = whole(60, 1, 3600, "Limit of one event; then it is tried again.")
    health_check_interval_seconds: int = whole(30, 1, 3600, "Period of the check of its own health.")


class WorkerTiming(Timing):
    """The same for a worker, which polls more often."""

    fallback_polling_interval_seconds: int = whole(2, 1, 60, _POLL)


class Processing(Table):
    """How much at once."""

    batch_size: int = whole(20, 1, 1000, _BATCH)
    max_concurrent_operations: int = whole(50, 1, 10_000, _CONCURRENT)
    max_retries: int = whole(3, 0, 100, "Repetitions of an event before it is set aside.")
    backoff: EventBackoff = table(EventBackoff)


class ReadinessProcessing(Processing):
    """The same for the search for ready steps."""

    batch_size: int = whole(50, 1, 1000, _BATCH)
    max_concurrent_operations: int = whole(100, 1, 10_000, _CONCURRENT)


class WorkerProcessing(Processing):
    """The same for a worker."""

    max_concurrent_operations: int = whole(100, 1, 10_000, _CONCURRENT)


class EventSystem(Table):
    """What all three have in common."""

    deployment_mode: Mode = choice("Hybrid", _MODE, advice=_MODE_ADVICE, variable="TASKER_DEPLOYMENT_MODE")
    health: Health = table(Health)


class Orchestrator(EventSystem):
    """How an orchestrator learns of requests, results and finalizations."""

    system_id: str = text("orchestration-event-system", _SYSTEM_ID)
    timing: Timing = table(Timing)
    processing: Processing = table(Processing)


class Readiness(EventSystem):
    """The search for what no message announced. Every process that reaches the database does it."""

    system_id: str = text("task-readiness-event-system", _SYSTEM_ID)
    timing: Timing = table(Timing)
    processing: ReadinessProcessing = table(ReadinessProcessing)


class OrchestrationSystems(Table):
    """The event systems of an orchestrator."""

    orchestration: Orchestrator = table(Orchestrator)
    task_readiness: Readiness = table(Readiness)


class FallbackPoller(Table):
    """The worker's look at its queues when nothing announces messages."""

    enabled: bool = flag(True, "Poll.")
    polling_interval_ms: int = whole(
        1000,
        10,
        60_000,
        "Longest pause between two looks. Wins over timing.fallback_polling_interval_seconds where both are set.",
    )
    batch_size: int = whole(20, 1, 1000, "Messages that one look takes.")
    visibility_timeout_seconds: int = whole(30, 1, 3600, "How long a polled message stays hidden.")
    age_threshold_seconds: int = whole(5, 0, 3600, "Only messages at least so old (PGMQ).")
    max_age_hours: int = whole(24, 1, 720, "Only messages at most so old (PGMQ).")
    supported_namespaces: tuple[str, ...] = several(
        (), "The worker's namespaces. Empty: all.", variable="WORKER_NAMESPACES"
    )


class SeenEvents(Table):
    """Events in the same process."""

    deduplication_cache_size: int = whole(
        10_000, 1, 1_000_000, "Events remembered, so that a doubled one is seen once."
    )


class Listener(Table):
    """The connection that listens for notifications."""

    connection_timeout_seconds: int = whole(30, 1, 300, "Limit of connecting.")
    event_timeout_seconds: int = whole(60, 1, 3600, "Longest wait for a notification before the connection is checked.")
    retry_interval_seconds: int = whole(5, 1, 300, "Pause before connecting again.")
    max_retry_attempts: int = whole(5, 0, 100, "Failures in a row before polling takes over.")
    batch_processing: bool = flag(True, "Handle notifications that came together as one.")


class WorkerMetadata(Table):
    """The worker's ways to learn of steps."""

    fallback_poller: FallbackPoller = table(FallbackPoller)
    in_process_events: SeenEvents = table(SeenEvents)
    listener: Listener = table(Listener)


class WorkerSystem(EventSystem):
    """How a worker learns of steps."""

    system_id: str = text("worker-event-system", _SYSTEM_ID)
    timing: WorkerTiming = table(WorkerTiming)
    processing: WorkerProcessing = table(WorkerProcessing)
    metadata: WorkerMetadata = table(WorkerMetadata)


class WorkerSystems(Table):
    """The event systems of a worker."""

    worker: WorkerSystem = table(WorkerSystem)
