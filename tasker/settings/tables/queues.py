"""`common.queues`: the messaging backend and its use."""

from __future__ import annotations

from tasker.contracts.defaults.listening import LOST_POLL_MS
from tasker.contracts.defaults.pressure import CRITICAL_DEPTH, OVERFLOW_DEPTH, VISIBILITY_TIMEOUT_SECONDS
from tasker.contracts.defaults.queues import STEP_RESULTS_QUEUE, TASK_FINALIZATIONS_QUEUE, TASK_REQUESTS_QUEUE
from tasker.contracts.messaging import DEFAULT_BACKEND
from tasker.contracts.settings import Table, table, text, whole
from tasker.settings.tables.formats import OrchestrationQueue


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
        """Return the tables of messaging backends by the backend's name (see `tasker.settings.installed`)."""
        return {name: getattr(self, name) for name in type(self).model_fields if name not in QueueSettings.model_fields}
