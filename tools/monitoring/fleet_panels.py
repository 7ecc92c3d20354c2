"""The first row of the dashboard: are there enough processes, and do they answer?"""

from __future__ import annotations

from tools.monitoring.panel import BY_NAME, Panel, quantiles, rate

FLEET = (
    Panel("Processes", (("{{kind}}, {{state}}", "max by (kind, state) (tasker_workers)"),)),
    Panel(
        "Slots in use",
        (("workers", BY_NAME["TaskerWorkersBusy"].signal),),
        "percent",
        alert="TaskerWorkersBusy",
    ),
    Panel("Workers that there should be", (("{{namespace}}", "max by (namespace) (tasker_workers_recommended)"),)),
    Panel(
        "Oldest step in a queue",
        (("{{namespace}}", BY_NAME["TaskerQueueAgeHigh"].signal),),
        "s",
        alert="TaskerQueueAgeHigh",
    ),
    Panel("Answers of servers", quantiles("api_request_latency_ms", "endpoint"), "ms"),
    Panel("Requests", (("{{status_code}}", rate("api_requests_total", "status_code")),), "ops"),
    Panel(
        "Errors of the database and of queues",
        (
            ("no connection in time", rate("tasker_db_pool_acquire_errors_total")),
            ("looks that failed", rate("tasker_queue_errors_total")),
            ("messages that were not taken", rate("pgmq_enqueue_failures_total")),
        ),
        "ops",
    ),
    Panel(
        "Domain events",
        (
            ("published, {{namespace}}", rate("tasker_domain_events_published_total", "namespace")),
            ("failed, {{namespace}}", rate("tasker_domain_events_failed_total", "namespace")),
        ),
        "ops",
    ),
)
