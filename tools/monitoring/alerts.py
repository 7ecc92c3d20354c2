"""The alerts, as data: rules, documentation and dashboard are made from them."""

from __future__ import annotations

from tasker.settings.queues import DepthThresholds
from tools.monitoring.alert import Alert, Bound, one, two
from tools.monitoring.care_alerts import CARE
from tools.monitoring.connection_alerts import CONNECTIONS

CRITICAL_DEPTH = DepthThresholds.critical_threshold
BACKPRESSURE = (
    Alert(
        "TaskerCircuitBreakerOpen",
        "api_circuit_breaker_state",
        "==",
        one("critical", 2, "30s"),
        "A server does not reach the database",
        "Look whether PostgreSQL answers (`tasker doctor`). The server answers 503 until it does, and tries by itself.",
    ),
    Alert(
        "TaskerMessagingCircuitBreakerOpen",
        'tasker_circuit_breaker_state{component="messaging"}',
        "==",
        one("critical", 2, "30s"),
        "A process does not reach the messaging provider",
        "Look at the provider (`tasker broker status`). Steps stay in the database and go on when it answers.",
    ),
    Alert(
        "TaskerDatabaseDown",
        "tasker_database_up",
        "==",
        one("critical", 0, "1m"),
        "The database does not answer a server",
        "As above; nothing moves until it does, and nothing is lost.",
    ),
    Alert(
        "TaskerNoWorkers",
        'absent(tasker_workers{kind="worker",state="live"})',
        "",
        one("critical", 1, "2m"),
        "No worker is live",
        "Start one; `tasker top` tells of those that were lost.",
    ),
    Alert(
        "TaskerAPIRejectionsHigh",
        '60 * sum(rate(api_requests_rejected_total{reason!="validation"}[5m]))',
        ">",
        two(5, 20, "2m"),
        "A server refuses requests",
        "The label `reason` says why: too many of one client, an open breaker, or namespaces that are full.",
        " a minute",
    ),
    Alert(
        "TaskerAPILatencyHigh",
        "histogram_quantile(0.99, sum by (le, endpoint)"
        ' (rate(api_request_latency_ms_bucket{endpoint!~"/v1/tasks(/.uuid.)?"}[5m])))',
        ">",
        two(200, 5000, "10m"),
        "A server answers slowly",
        "Look at the wait for connections, and for slow statements (`tasker doctor`). Creating and reading a task"
        " may wait for its end, and are left out: `tasker_task_initialization_duration_milliseconds` times the former.",
        " ms",
    ),
    Alert(
        "TaskerChannelSaturated",
        'mpsc_channel_usage_percent{channel!="handler_dispatch"}',
        ">",
        two(80, 90, "15m", "5m"),
        "Something bounded in a worker fills up",
        "`completion`: storing results is slow, look at the database. `domain_events`: a subscriber is slow.",
        " %",
    ),
    Alert(
        "TaskerChannelOverflow",
        "sum by (channel) (increase(mpsc_channel_full_events_total[5m]))",
        ">",
        one("info", 0, "5m"),
        "Something bounded in a worker was full",
        "It recovers by itself; where it goes on the alert before this one says what to look at.",
        " in five minutes",
    ),
    Alert(
        "TaskerQueueDepthHigh",
        "max by (namespace) (tasker_queue_depth + tasker_steps_ready)",
        ">",
        two(0.7 * CRITICAL_DEPTH, 0.9 * CRITICAL_DEPTH, "5m"),
        "More steps wait than workers take",
        "`tasker analytics scaling` says how many workers the namespace should have.",
        " steps",
    ),
    Alert(
        "TaskerQueueAgeHigh",
        "max by (namespace) (tasker_queue_age_seconds)",
        ">",
        one("warning", 300, "5m"),
        "A step has been in its queue for long",
        "As above; where the queue is short, `tasker task explain` says what this one waits for.",
        " s",
    ),
    Alert(
        "TaskerQueueStuck",
        "(max by (namespace) (tasker_queue_depth) unless max by (namespace) (rate(tasker_steps_taken_total[10m])) > 0)",
        ">",
        one("critical", 0, "10m"),
        "Steps wait and nobody takes them",
        "A worker serves the namespace? (`tasker top`) Otherwise its log says why it takes nothing.",
        " steps",
    ),
    Alert(
        "TaskerWorkersBusy",
        "100 * max(tasker_worker_steps) / max(tasker_worker_slots)",
        ">",
        one("warning", 90, "15m"),
        "Nearly all slots of the workers are in use",
        "What is submitted on top waits. `tasker analytics scaling` says how many workers each namespace should have;"
        " while no queue grows there are enough.",
        " %",
    ),
    Alert(
        "TaskerWorkerClaimRefusalsHigh",
        "60 * sum by (reason) (rate(worker_claim_refusals_total[5m]))",
        ">",
        two(20, 50, "2m"),
        "Workers stop claiming again and again",
        "The label `reason` says why: results cannot be stored fast enough, or the lease was lost.",
        " a minute",
    ),
    Alert(
        "TaskerHandlerWaitTimeHigh",
        "worker_handler_semaphore_wait_oldest_ms",
        ">",
        two(500, 2000, "2m"),
        "Claimed steps wait for a thread or a child process",
        "Look for slow handlers (`tasker top`); else more workers, or more threads.",
        " ms",
    ),
    Alert(
        "TaskerFFISlowSendsHigh",
        "60 * sum(rate(ffi_completion_slow_sends_total[5m]))",
        ">",
        one("warning", 0, "2m"),
        "Storing results takes too long",
        "Look at the database: locks, disks, connections.",
        " a minute",
    ),
    Alert(
        "TaskerDomainEventsDropped",
        '60 * sum(rate(mpsc_channel_full_events_total{channel=~"domain_events|subscribers"}[5m]))',
        ">",
        (Bound("info", 50, "5m"), Bound("warning", 200, "5m")),
        "Domain events are dropped for subscribers of a worker",
        "No step suffers. Look for a slow subscriber; what must arrive is declared `durable`.",
        " a minute",
    ),
    Alert(
        "TaskerTaskFailuresHigh",
        "100 * sum(rate(tasker_tasks_failures_total[15m]))"
        " / (sum(rate(tasker_tasks_completions_total[15m])) + sum(rate(tasker_tasks_failures_total[15m])))",
        ">",
        two(5, 10, "10m"),
        "Tasks end in error",
        "`tasker dlq groups` shows them by what failed.",
        " %",
    ),
    Alert(
        "TaskerRepairs",
        "max by (kind) (increase(tasker_repairs_total[1h]))",
        ">",
        one("info", 0, "5m"),
        "A sweep has repaired what was lost",
        "Workers that are killed leave repairs behind; without such a reason look at the logs of the orchestrators.",
        " in an hour",
    ),
    Alert(
        "TaskerPluginBehind",
        "60 * sum by (plugin) (rate(tasker_plugin_dropped_total[5m]))",
        ">",
        one("warning", 0, "5m"),
        "A plugin is too slow for what happens",
        "What it missed is in the database. With `prometheus` the counters are too low from here on.",
        " a minute",
    ),
)
GROUPS = {"tasker_backpressure": BACKPRESSURE, "tasker_connections": CONNECTIONS, "tasker_care": CARE}
"""By the names of the groups of rules."""
ALERTS = tuple(alert for group in GROUPS.values() for alert in group)
