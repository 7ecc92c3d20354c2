"""Settings of execution: concurrency, retries, sweeps, limits of growth, staleness."""

from __future__ import annotations

from typing import Annotated, Literal

from tasker.json_values import VALUE_LIMIT_BYTES
from tasker.settings.formats import CallablePattern, Channel, ErrorRuleLine, Pattern, RateText
from tasker.settings.table import Bounds, Table, choice, flag, number, several, table, text, whole
from tasker.template.names import BACKOFF_MULTIPLIER, JITTER_SHARE, MAX_BACKOFF_MS, MOST_BATCHES


class BatchProcessing(Table):
    """Steps that divide their work into batches."""

    enabled: bool = flag(True, "Off: a batchable step fails.")
    max_batches_per_step: int = whole(MOST_BATCHES, 1, 200_000, "Maximum number of batches of one step.")
    checkpoint_stall_minutes: int = whole(
        15,
        1,
        1440,
        "Time without a new checkpoint after which a running step that writes checkpoints gets a dead letter; it "
        "continues to run.",
    )


class DecisionPoints(Table):
    """Steps that choose the next steps."""

    enabled: bool = flag(True, "Off: a decision counts as `no_branches`.")
    max_steps_per_decision: int = whole(100, 1, 10_000, "Maximum number of steps that one decision may name.")
    max_decision_depth: int = whole(
        20, 1, 100, "Maximum depth of nested decisions.", advice="3 is plenty for most workflows.", single_process=3
    )
    warn_threshold_steps: int = whole(50, 1, 10_000, "Number of named steps at which a warning is logged.")
    warn_threshold_depth: int = whole(10, 1, 100, "Depth at which a warning is logged.", single_process=2)
    enable_metrics: bool = flag(True, "Count decisions and the steps they create.")
    enable_detailed_logging: bool = flag(False, "Log the steps created by each decision and batchable step.")


class StalenessThresholds(Table):
    """Time that a task may stay in a state without progress. A template's own `lifecycle` overrides it."""

    waiting_for_dependencies_minutes: int = whole(60, 1, 1440, "Minutes in `waiting_for_dependencies`.")
    waiting_for_retry_minutes: int = whole(30, 1, 1440, "Minutes in `waiting_for_retry`.")
    steps_in_process_minutes: int = whole(30, 1, 1440, "Minutes in `steps_in_process`.")
    task_max_lifetime_hours: int = whole(
        24,
        1,
        168,
        "Maximum age in hours of an open task, active or not; does not apply to paused tasks.",
    )


class Actions(Table):
    """Independent actions for a stale task."""

    auto_transition_to_error: bool = flag(True, "End it in `error`.")
    auto_move_to_dlq: bool = flag(True, "Create a dead letter for it.")
    emit_events: bool = flag(True, "Announce it.")
    event_channel: Channel = text("task_staleness_detected", "Channel of the notification (NOTIFY of the database).")


class Staleness(Table):
    """Detection of tasks without progress."""

    enabled: bool = flag(True, "Search.")
    dry_run: bool = flag(False, "Only log the actions.")
    batch_size: int = whole(
        100, 1, 10_000, "Stale tasks per transaction; a search uses as many transactions as it needs."
    )
    detection_interval_seconds: int = whole(300, 30, 3600, "Period of the search.")
    thresholds: StalenessThresholds = table(StalenessThresholds)
    actions: Actions = table(Actions)


class DeadLetterSettings(Table):
    """Dead letters: tasks that need an operator."""

    enabled: bool = flag(True, "Off: stale and failed tasks are left as they are.")
    staleness_detection: Staleness = table(Staleness)


class Backoff(Table):
    """Retries of a step whose template has no `retry` block; a template or a handler overrides them."""

    default_backoff_seconds: tuple[Annotated[int, Bounds(1, 86_400)], ...] = several(
        (1, 5, 15, 30, 60),
        "Delays after the first, second ... failed attempt; the last one repeats. Empty: 1 s, multiplied by "
        "backoff_multiplier each time.",
        single_process=(),
    )
    backoff_multiplier: float = number(
        BACKOFF_MULTIPLIER,
        1,
        10,
        "Growth factor of exponential delays, also for `retry` blocks whose profile does not set one.",
    )
    max_backoff_seconds: int = whole(
        3600, 1, 3600, "Maximum delay.", advice="60 suits most handlers.", single_process=MAX_BACKOFF_MS // 1000
    )
    jitter_enabled: bool = flag(
        True, "Randomize delays, so that steps that failed together are not retried together.", single_process=False
    )
    jitter_max_percentage: float = number(JITTER_SHARE, 0, 1, "Maximum share of the delay that is added or subtracted.")


class Execution(Table):
    """Settings on which all processes that advance tasks must agree."""

    environment: Literal["test", "development", "production"] = choice(
        "development", "Environment. If set, templates apply their overrides for it.", variable="TASKER_ENV"
    )
    on_blocked: Literal["give_up", "wait"] = choice(
        "give_up",
        "Outcome of a task whose remaining steps are all blocked by failed ones: `give_up` ends it in `error`, "
        "`wait` leaves it in `blocked_by_failures` for an operator.",
    )
    enqueue_window: int = whole(
        2000,
        1,
        1_000_000,
        "Maximum number of enqueued steps per namespace; further ready steps stay in the backlog, which is "
        "ordered by priority.",
    )
    max_task_depth: int = whole(
        10,
        1,
        100,
        "Maximum number of tasks in a line of which each was started by a step of the one before, not counting the "
        "first: a template that starts itself ends there.",
    )
    max_task_descendants: int = whole(
        100_000,
        1,
        10_000_000,
        "Maximum number of tasks that `type: task` steps start below one task, on all levels together.",
    )
    context_limit_bytes: int = whole(VALUE_LIMIT_BYTES, 1024, 67_108_864, "Maximum size of a task's context as JSON.")
    result_limit_bytes: int = whole(VALUE_LIMIT_BYTES, 1024, 67_108_864, "Maximum size of a step's result as JSON.")


class Log(Table):
    """Log lines that processes write to standard error."""

    format: Literal["text", "json"] = choice(
        "text", "Format of log lines: text or JSON objects.", variable="TASKER_LOG_FORMAT"
    )


class Sweep(Table):
    """Ages at which the sweep repairs lost work. A healthy system never needs it."""

    slice: int = whole(500, 1, 10_000, "Open tasks read per query.")
    hint_grace_ms: int = whole(5_000, 100, 3_600_000, "Age after which the message of an enqueued step is verified.")
    park_grace_ms: int = whole(5_000, 100, 3_600_000, "Age after which another process takes over a stored result.")
    idle_grace_ms: int = whole(2_000, 100, 3_600_000, "Maximum time that a task may stay in a transient state.")
    unserved_timeout_seconds: int = whole(
        3600,
        0,
        31_536_000,
        "Time after which a step fails if no worker of its namespace has its handler; 0: it waits forever. Does "
        "not apply to a namespace without workers: its steps wait.",
    )
    forget_workers_after_seconds: int = whole(
        86_400,
        60,
        31_536_000,
        "Time that `tasker worker list` still shows a process that is gone.",
    )


class TaskTemplates(Table):
    """Locations of templates."""

    search_paths: tuple[Pattern, ...] = several(
        ("config/tasks/**/*.{yml,yaml}",),
        "Patterns of the template files that `tasker worker` serves if its command line names none.",
        shortest=1,
    )


class Lease(Table):
    """Lease by which other processes detect that a worker is gone."""

    lease_ms: int = whole(15_000, 1000, 600_000, "Time that a silent worker keeps its steps.")
    grace_ms: int = whole(10_000, 0, 600_000, "Time after its timeout until a step is taken from a worker.")


class WorkerExecution(Table):
    """Execution of steps in a worker, and the report of their results."""

    threads: int = whole(16, 1, 1000, "Threads for blocking handlers.")
    loop_lag_warning_ms: int = whole(
        1_000,
        0,
        600_000,
        "An async handler that blocks the event loop for longer is logged with its stack; 0: never.",
    )
    keep_logs: Literal["debug", "info", "warning", "error", "off"] = choice(
        "info", "Minimum level at which output of handlers (log and print) is stored with their steps; `off`: none."
    )
    kept_log_lines: int = whole(1_000, 1, 100_000, "Maximum number of stored log lines per attempt.")
    result_path: Literal["inline", "queued"] = choice(
        "inline",
        "`inline`: the worker advances its tasks itself; `queued`: an orchestrator processes its results.",
    )
    error_rules: tuple[ErrorRuleLine, ...] = several(
        (),
        "Errors after which steps are retried or not, whatever their templates and handlers say: "
        "`payments never card_declined 404`, `payments/charge retry KeyError`, `* never sqlstate:42`. The first that "
        "names an error decides.",
        live=True,
    )


class NamedLimit(Table):
    """Limit that steps of any template may use (`limits`). It applies to all processes of a fleet together."""

    concurrency: int = whole(
        0, 0, 1_000_000, "How many steps run at the same time, for each value of their key; 0: unlimited."
    )
    rate: RateText = text(
        "", "Rate at which attempts begin, for each value of their key: `100/s`, `30/m`; empty: unlimited.", shortest=0
    )
    burst: int = whole(
        0,
        0,
        1_000_000,
        "How many attempts begin at once after a pause; 0: a quarter of those of one second, plus one.",
    )


class Handlers(Table):
    """Code that templates may name."""

    allow: tuple[CallablePattern, ...] = several(
        (),
        "What templates may import by its path beside the handlers that are registered or found: `my_project.*` is "
        "everything below a package, `*` everything that is installed.",
        single_process=("*",),
    )
