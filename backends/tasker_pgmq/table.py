"""Settings of the backend in the configuration: used by the engine while the queues are in its database."""

from __future__ import annotations

from tasker.settings.queues import DepthThresholds as CommonThresholds
from tasker.settings.queues import QueueSettings
from tasker.settings.table import Table, table, whole


class DepthThresholds(Table):
    """Thresholds of ready work of a namespace. They override `common.queues.queue_depth_thresholds`."""

    critical_threshold: int = whole(
        CommonThresholds.critical_threshold,
        1,
        1_000_000_000,
        "Ready steps from which on new tasks without priority are refused (503).",
        overrules="common.queues.queue_depth_thresholds.critical_threshold",
    )
    overflow_threshold: int = whole(
        CommonThresholds.overflow_threshold,
        1,
        1_000_000_000,
        "Ready steps from which on tasks of positive priority are refused, too, and an error is logged.",
        overrules="common.queues.queue_depth_thresholds.overflow_threshold",
    )


class PgmqTable(Table):
    """PGMQ, in the engine's own database."""

    poll_interval_ms: int = whole(
        QueueSettings.poll_interval_ms,
        10,
        10_000,
        "Poll interval of a queue without notifications. Counts above common.queues.poll_interval_ms.",
        overrules="common.queues.poll_interval_ms",
    )
    queue_depth_thresholds: DepthThresholds = table(DepthThresholds)
