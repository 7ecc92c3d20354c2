"""Alerts of what needs a person: failures, tasks that rest, dead letters, callers who are not let in."""

from __future__ import annotations

from tools.monitoring.alert import Alert, one, two

CARE = (
    Alert(
        "TaskerHighErrorRate",
        "sum(rate(tasker_step_errors_total[5m]))",
        ">",
        one("warning", 10, "5m"),
        "Many attempts fail",
        "`tasker_steps_failures_total` says by `error_type` what they have in common, `tasker analytics bottlenecks` of"
        " which steps they are.",
        " a second",
    ),
    Alert(
        "TaskerAttemptFailuresHigh",
        "100 * sum(rate(tasker_steps_failures_total[10m])) / sum(rate(tasker_steps_executions_total[10m]))",
        ">",
        one("warning", 10, "10m"),
        "A large share of attempts fails",
        "As above. Most are tried again, so tasks need not end in error yet; they take longer, and load what fails.",
        " %",
    ),
    Alert(
        "HighPendingDLQInvestigations",
        "max(tasker_dlq_pending_investigations)",
        ">",
        two(50, 1000, "15m"),
        "Many dead letters wait for somebody",
        "`tasker dlq groups` shows them by what failed; `tasker dlq replay` runs a group again.",
        " dead letters",
    ),
    Alert(
        "HighStalenessRate",
        "sum(rate(tasker_staleness_tasks_detected_total[5m]))",
        ">",
        one("critical", 10, "10m"),
        "Many tasks rest for too long",
        "Workers are missing, or hang; or the limits are too short for what the tasks do.",
        " a second",
    ),
    Alert(
        "SlowStalenessDetection",
        "sum(rate(tasker_staleness_detection_duration_milliseconds_sum[15m]))"
        " / sum(rate(tasker_staleness_detection_duration_milliseconds_count[15m]))",
        ">",
        one("warning", 5000, "5m"),
        "The search for stale tasks takes long",
        "Look for slow statements (`tasker doctor`), and for how many tasks are open.",
        " ms",
    ),
    Alert(
        "StaleCheckpoint",
        "max by (namespace) (tasker_checkpoint_age_seconds)",
        ">",
        one("warning", 600, "5m"),
        "A running step has not stored a checkpoint for long",
        "Its handler hangs, or takes larger parts than it should; `tasker top` shows what runs.",
        " s",
    ),
    Alert(
        "TaskerAuthenticationFailures",
        "60 * sum by (reason) (rate(tasker_auth_failures_total[5m]))",
        ">",
        one("warning", 10, "5m"),
        "Callers are not let in",
        "The label `reason` says why: a token that has expired, a key that was changed, or somebody who guesses.",
        " a minute",
    ),
)
