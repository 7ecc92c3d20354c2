"""Defaults of the detection of stale tasks."""

from __future__ import annotations

WAITING_FOR_DEPENDENCIES_MINUTES = 60
"""Minutes in `waiting_for_dependencies` after which a task is stale."""

WAITING_FOR_RETRY_MINUTES = 30
"""Minutes in `waiting_for_retry` after which a task is stale."""

STEPS_IN_PROCESS_MINUTES = 30
"""Minutes in `steps_in_process` after which a task is stale."""

TASK_MAX_LIFETIME_HOURS = 24
"""Maximum time from the creation of a task to its end, active or not."""

CHECKPOINT_STALL_MINUTES = 15
"""Maximum time between two checkpoints of a running step that writes checkpoints."""

STALENESS_INTERVAL_SECONDS = 300
"""Interval of the detection."""

STALE_SLICE = 100
"""Stale tasks per transaction."""

STALENESS_CHANNEL = "task_staleness_detected"
"""Channel on which each stale task is notified."""
