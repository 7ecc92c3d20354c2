"""The defaults of the search for tasks that nothing moves any more."""

from __future__ import annotations

WAITING_FOR_DEPENDENCIES_MINUTES = 60
"""After so long in `waiting_for_dependencies` a task is stale."""

WAITING_FOR_RETRY_MINUTES = 30
"""The same in `waiting_for_retry`."""

STEPS_IN_PROCESS_MINUTES = 30
"""The same in `steps_in_process`."""

TASK_MAX_LIFETIME_HOURS = 24
"""From the creation of a task to its end, active or not."""

CHECKPOINT_STALL_MINUTES = 15
"""Between two checkpoints of a running step that writes them."""

STALENESS_INTERVAL_SECONDS = 300
"""Period of the search."""

STALE_SLICE = 100
"""Stale tasks per transaction."""

STALENESS_CHANNEL = "task_staleness_detected"
"""The channel on which each stale task is announced."""
