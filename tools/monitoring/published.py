"""Metrics that were published under other names (`_` for dots), or have no place here: what says the same."""

from __future__ import annotations

ELSEWHERE = (
    ("pgmq_queue_depth", "`tasker_queue_depth`", "by namespace, for every messaging backend"),
    ("pgmq_queue_max_depth", "not applicable", "a setting (`critical_threshold`); the alert has its default"),
    (
        "tasker_sql_queries_total, tasker_db_transactions_total",
        "`tasker_sql_query_duration_milliseconds_count`",
        "one write is one transaction; the histogram counts it already",
    ),
    ("tasker_db_transaction_duration", "`tasker_sql_query_duration_milliseconds`", "the same"),
    (
        "tasker_db_pool_connections_active, connections_idle",
        "`tasker_db_pool_connections`",
        "label `state`: active, idle, max",
    ),
    (
        "tasker_db_pool_wait_duration",
        "`tasker_db_pool_slow_acquires_total`, `tasker_db_pool_waiting`",
        "waits are counted when they are too long",
    ),
    ("tasker_queue_messages_sent_total", "`tasker_steps_enqueued_total`", "a message is a hint of one step"),
    (
        "tasker_queue_messages_received_total, messages_deleted.total",
        '`tasker_steps_claimed_total{claim_method="queue"}`',
        "taking a hint, deleting it and claiming its step are one write",
    ),
    (
        "tasker_queue_message_receive_duration",
        "`tasker_step_claim_duration_milliseconds`",
        "the same write",
    ),
    ("tasker_queue_message_send_duration", "`tasker_sql_query_duration_milliseconds`", "sent with the write"),
    (
        "tasker_queue_visibility_timeouts_total, retry_attempts.total",
        "`tasker_repairs_total`",
        "what was lost is found by a sweep, which says what it has repaired",
    ),
    (
        "tasker_queue_errors_total, pgmq_enqueue_failures_total",
        '`tasker_circuit_breaker_rejections_total{component="messaging"}`',
        "with PGMQ a failure to send is a failure of the write",
    ),
    ("messaging_circuit_breaker_state", '`tasker_circuit_breaker_state{component="messaging"}`', "a broker's breaker"),
    (
        "messaging_circuit_breaker_rejections_total, ffi_completion_circuit_open_rejections_total",
        "`tasker_circuit_breaker_rejections_total`",
        "label `component`: `messaging`, `completion`",
    ),
    ("mpsc_channel_saturation", "`mpsc_channel_usage_percent / 100`", "one number, one name"),
    (
        "worker_dispatch_channel_saturation, worker_completion_channel_saturation",
        "`mpsc_channel_usage_percent`",
        "label `channel`: `handler_dispatch`, `completion`",
    ),
    (
        "orchestration_command_channel_size, _saturation, orchestration_commands_received_total, _processed_total",
        "not applicable",
        "no commands wait in memory: an orchestrator takes from a queue what it can do now",
    ),
    ("worker_handler_semaphore_permits_available", "`tasker_steps_slots - tasker_steps_active_executions`", ""),
    ("worker_handler_semaphore_permits_total", "`tasker_steps_slots`", ""),
    (
        "worker_handler_semaphore_wait_ms",
        "`worker_handler_semaphore_wait_oldest_ms`",
        "the step that has waited longest now: it shows a wait that has not ended, too",
    ),
    ("worker_handler_execution_ms", "`tasker_step_execution_duration_milliseconds`", ""),
    ("domain_events_dropped_total", '`mpsc_channel_full_events_total{channel="domain_events"}`', ""),
    (
        "domain_events_dispatched_total, router_durable_routed, router_fast_routed, router_broadcast_routed",
        "`tasker_domain_events_publish_duration_milliseconds_count`",
        "label `delivery_mode`",
    ),
    (
        "tasker_tasks_created, completed, failed",
        "`tasker_tasks_requests_total` and the like",
        "other names of the same",
    ),
    ("tasker_workers_active", '`tasker_workers{kind="worker",state="live"}`', ""),
    ("tasker_step_execution_time_ms", "`tasker_step_execution_duration_milliseconds`", ""),
    ("ffi_overhead", "not applicable", "handlers are Python, called without a boundary"),
)
"""(published, here, why)."""
