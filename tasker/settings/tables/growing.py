"""`orchestration.decision_points`, `.batch_processing`, `.dlq`: dynamic expansion of tasks, and stuck tasks."""

from __future__ import annotations

from tasker.contracts.defaults import (
    DECISION_DEPTH,
    STEPS_PER_DECISION,
    WARN_DECISION_DEPTH,
    WARN_STEPS_PER_DECISION,
)
from tasker.contracts.defaults.staleness import (
    CHECKPOINT_STALL_MINUTES,
    STALE_SLICE,
    STALENESS_CHANNEL,
    STALENESS_INTERVAL_SECONDS,
    STEPS_IN_PROCESS_MINUTES,
    TASK_MAX_LIFETIME_HOURS,
    WAITING_FOR_DEPENDENCIES_MINUTES,
    WAITING_FOR_RETRY_MINUTES,
)
from tasker.contracts.rules.limits import MOST_BATCHES
from tasker.contracts.settings import Table, flag, table, text, whole
from tasker.settings.tables.formats import Channel


class BatchProcessing(Table):
    """Steps that divide their work into batches."""

    enabled: bool = flag(True, "Off: a batchable step fails.")
    max_batches_per_step: int = whole(MOST_BATCHES, 1, 200_000, "Maximum number of batches of one step.")
    checkpoint_stall_minutes: int = whole(
        CHECKPOINT_STALL_MINUTES,
        1,
        1440,
        "Time without a new checkpoint after which a running step that writes checkpoints gets a dead letter; it "
        "continues to run.",
    )


class DecisionPoints(Table):
    """Steps that choose the next steps."""

    enabled: bool = flag(True, "Off: a decision counts as `no_branches`.")
    max_steps_per_decision: int = whole(
        STEPS_PER_DECISION, 1, 10_000, "Maximum number of steps that one decision may name."
    )
    max_decision_depth: int = whole(
        DECISION_DEPTH, 1, 100, "Maximum depth of nested decisions.", advice="3 is plenty for most workflows."
    )
    warn_threshold_steps: int = whole(
        WARN_STEPS_PER_DECISION, 1, 10_000, "Number of named steps at which a warning is logged."
    )
    warn_threshold_depth: int = whole(WARN_DECISION_DEPTH, 1, 100, "Depth at which a warning is logged.")
    enable_metrics: bool = flag(True, "Count decisions and the steps they create.")
    enable_detailed_logging: bool = flag(False, "Log the steps created by each decision and batchable step.")


class StalenessThresholds(Table):
    """Time that a task may stay in a state without progress. A template's own `lifecycle` overrides it."""

    waiting_for_dependencies_minutes: int = whole(
        WAITING_FOR_DEPENDENCIES_MINUTES, 1, 1440, "Minutes in `waiting_for_dependencies`."
    )
    waiting_for_retry_minutes: int = whole(WAITING_FOR_RETRY_MINUTES, 1, 1440, "Minutes in `waiting_for_retry`.")
    steps_in_process_minutes: int = whole(STEPS_IN_PROCESS_MINUTES, 1, 1440, "Minutes in `steps_in_process`.")
    task_max_lifetime_hours: int = whole(
        TASK_MAX_LIFETIME_HOURS,
        1,
        168,
        "Maximum age in hours of an open task, active or not; does not apply to paused tasks.",
    )


class Actions(Table):
    """Independent actions for a stale task."""

    auto_transition_to_error: bool = flag(True, "End it in `error`.")
    auto_move_to_dlq: bool = flag(True, "Create a dead letter for it.")
    emit_events: bool = flag(True, "Announce it.")
    event_channel: Channel = text(STALENESS_CHANNEL, "Channel of the notification (NOTIFY of the database).")


class Staleness(Table):
    """Detection of tasks without progress."""

    enabled: bool = flag(True, "Search.")
    dry_run: bool = flag(False, "Only log the actions.")
    batch_size: int = whole(
        STALE_SLICE, 1, 10_000, "Stale tasks per transaction; a search uses as many transactions as it needs."
    )
    detection_interval_seconds: int = whole(STALENESS_INTERVAL_SECONDS, 30, 3600, "Period of the search.")
    thresholds: StalenessThresholds = table(StalenessThresholds)
    actions: Actions = table(Actions)


class DeadLetterSettings(Table):
    """Dead letters: tasks that need an operator."""

    enabled: bool = flag(True, "Off: stale and failed tasks are left as they are.")
    staleness_detection: Staleness = table(Staleness)
