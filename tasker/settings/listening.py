"""`*.event_systems.*`: how a process learns of work: by notification, by polling, or both."""

from __future__ import annotations

from typing import Literal

from tasker.settings.table import Table, choice, flag, several, table, text, whole

Mode = Literal["Hybrid", "EventDrivenOnly", "PollingOnly"]
_MODE = (
    "`Hybrid`: notifications, with polling as a safety net; `EventDrivenOnly`: no polling while notifications "
    "arrive; `PollingOnly`: no listener."
)
_MODE_ADVICE = "Hybrid, unless no connection for LISTEN is available (then PollingOnly)."
_SYSTEM_ID = "Label of its log lines."
_POLL = "Maximum polling interval."
_HEALTH_CHECK = "Interval of its health check."


class HealthReporting(Table):
    """Error counts at which a process is unhealthy in learning of work."""

    enabled: bool = flag(True, "Count errors.")
    max_consecutive_errors: int = whole(10, 1, 1000, "Consecutive errors; a success resets the count.")
    error_rate_threshold_per_minute: int = whole(20, 1, 10_000, "Errors per minute.")
    performance_monitoring_enabled: bool = flag(True, "Measure latency.")


class Timing(Table):
    """Intervals."""

    fallback_polling_interval_seconds: int = whole(5, 1, 60, _POLL)
    health_check_interval_seconds: int = whole(30, 1, 3600, _HEALTH_CHECK)


class WorkerTiming(Timing):
    """Intervals of a worker, which polls more often."""

    fallback_polling_interval_seconds: int = whole(2, 1, 60, _POLL)


class ReadinessTiming(Table):
    """Intervals."""

    fallback_polling_interval_seconds: int = whole(5, 1, 60, "Period of the search.")


class EventSystemSettings(Table):
    """Common settings of the event systems of orchestrator and worker."""

    deployment_mode: Mode = choice("Hybrid", _MODE, advice=_MODE_ADVICE, variable="TASKER_DEPLOYMENT_MODE")
    health: HealthReporting = table(HealthReporting)


class OrchestratorEventSystem(EventSystemSettings):
    """Event system in which an orchestrator learns of requests, results and finalizations."""

    system_id: str = text("orchestration-event-system", _SYSTEM_ID)
    timing: Timing = table(Timing)


class Readiness(Table):
    """Search for work that no message announced. Every process with database access runs it, in every mode."""

    timing: ReadinessTiming = table(ReadinessTiming)


class OrchestrationSystems(Table):
    """Event systems of an orchestrator."""

    orchestration: OrchestratorEventSystem = table(OrchestratorEventSystem, live=True)
    task_readiness: Readiness = table(Readiness)


class FallbackPoller(Table):
    """Polling of the worker's queues when no notifications arrive."""

    enabled: bool = flag(True, "Poll in addition to notifications. False: Hybrid behaves as EventDrivenOnly.")
    polling_interval_ms: int = whole(
        1000,
        10,
        60_000,
        "Maximum polling interval. Overrides timing.fallback_polling_interval_seconds.",
    )
    supported_namespaces: tuple[str, ...] = several(
        (),
        "Namespaces of the worker if its command line names none. Empty: those of its templates.",
        variable="WORKER_NAMESPACES",
        live=False,
    )


class SeenEvents(Table):
    """In-process events."""

    deduplication_cache_size: int = whole(
        10_000, 1, 1_000_000, "Number of remembered events, to detect duplicates.", live=False
    )


class Listener(Table):
    """Connection that listens for notifications."""

    connection_timeout_seconds: int = whole(
        30,
        1,
        300,
        "Time limit of the check that notifications arrive; if it fails, the worker polls.",
    )
    event_timeout_seconds: int = whole(60, 1, 3600, "Interval between checks that notifications arrive.")
    retry_interval_seconds: int = whole(5, 1, 300, "Delay before reconnecting, with jitter.")
    max_retry_attempts: int = whole(5, 0, 100, "Consecutive failures after which an error is logged that it polls.")


class WorkerMetadata(Table):
    """Ways in which a worker learns of steps."""

    fallback_poller: FallbackPoller = table(FallbackPoller)
    in_process_events: SeenEvents = table(SeenEvents)
    listener: Listener = table(Listener)


class WorkerSystem(EventSystemSettings):
    """Event system in which a worker learns of steps."""

    system_id: str = text("worker-event-system", _SYSTEM_ID)
    timing: WorkerTiming = table(WorkerTiming)
    metadata: WorkerMetadata = table(WorkerMetadata)


class WorkerSystems(Table):
    """Event systems of a worker."""

    worker: WorkerSystem = table(WorkerSystem, live=True)
