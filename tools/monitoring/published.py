"""Metrics (`_` for dots) and alerts that were published under other names or have no place: what says the same."""

from __future__ import annotations

ELSEWHERE = (
    ("circuit_breaker_state", "`tasker_circuit_breaker_state`", "label `component`"),
    (
        "handler_semaphore_wait_ms, handler_semaphore_wait_time_ms",
        "`worker_handler_semaphore_wait_ms`",
        "other names of the same",
    ),
    (
        "router_durable_routed, router_fast_routed, router_broadcast_routed, tasker_domain_events_dispatched_total",
        "`domain_events_dispatched_total`",
        "label `delivery_mode`",
    ),
    ("tasker_domain_events_dropped_total", "`domain_events_dropped_total`", "another name of the same"),
    ("tasker_tasks_created", "`tasker_tasks_requests_total`", "another name of the same"),
    ("tasker_tasks_completed", "`tasker_tasks_completions_total`", "another name of the same"),
    ("tasker_tasks_failed, tasks_failed_total", "`tasker_tasks_failures_total`", "other names of the same"),
    (
        "tasker_step_execution_time_ms, handler_execution_duration, execution_duration,"
        " tasks_avg_processing_time_seconds",
        "`tasker_step_execution_duration_milliseconds`",
        "other names of the same",
    ),
    ("step_claim_duration", "`tasker_step_claim_duration_milliseconds`", "another name of the same"),
    (
        "result_submission_duration",
        "`tasker_step_result_submission_duration_milliseconds`",
        "another name of the same",
    ),
    ("tasker_operation_duration_ms", "`tasker_sql_query_duration_milliseconds`", "label `function`"),
    ("total_acquires", "`tasker_db_pool_acquires_total`", "another name of the same"),
    ("slow_acquires", "`tasker_db_pool_slow_acquires_total`", "another name of the same"),
    ("acquire_errors", "`tasker_db_pool_acquire_errors_total`", "another name of the same"),
    (
        "tasker_queue_visibility_timeouts_total",
        "`tasker_repairs_total`",
        "a taken message is gone, and its step has a lease; a sweep finds what was lost, and says what it has repaired",
    ),
    (
        "orchestration_commands_received_total, orchestration_commands_processed_total",
        "`tasker_polling_messages_processed_total`",
        "an orchestrator takes a message and deals with it in one",
    ),
    (
        "orchestration_command_channel_size, orchestration_command_channel_saturation",
        "not applicable",
        "no commands wait in memory: an orchestrator takes from a queue what it can do now",
    ),
    ("ffi_overhead", "not applicable", "handlers are Python, called without a boundary"),
    (
        "tasker_checkpoint_history_size",
        "not applicable",
        "of a checkpoint's history the last twenty entries are kept, so that it never grows",
    ),
    (
        "backoff_calculation_duration_seconds, backoff_lock_contention_total, backoff_sql_fallback_total,"
        " backoff_delay_applied_seconds",
        "not applicable",
        "the pause before a retry is computed by one function without IO: it has no lock, and nothing to fall back to",
    ),
    ("queue_wait_seconds, queue_age, scheduling_delay", "`tasker_queue_age_seconds`", "of the step that waits longest"),
    (
        "tasks_processed_total, tasks_completed_per_second, tasks_failed_per_second",
        "`tasker_tasks_completions_total`, `tasker_tasks_failures_total`",
        "a rate is asked of a counter",
    ),
    ("tasks_submitted_per_second", "`tasker_tasks_requests_total`", "the same"),
    ("worker_handler_semaphore_permits_total", "`tasker_steps_slots`", "the name of a gauge does not end in _total"),
    ("worker_active_tasks", "`tasker_steps_active_executions`", "label `namespace`"),
    (
        "worker_utilization",
        "`sum(tasker_steps_active_executions) / sum(tasker_steps_slots)`",
        "a share is asked of two gauges",
    ),
    (
        "worker_errors_per_second, success_rate, retry_rate, task_timeout_rate",
        "`tasker_steps_failures_total`, `tasker_steps_executions_total`",
        "label `error_type`",
    ),
    ("task_duration_seconds, end_to_end_latency", "`tasker_task_duration_milliseconds`", "other names of the same"),
    ("tasks_pending_gauge", "`tasker_tasks_active`", "label `state`"),
    ("queue_depth, consumer_lag", "`tasker_queue_depth`", "label `namespace`"),
    ("active_workers", "`tasker_workers_active`", "another name of the same"),
    ("heartbeat_miss_rate", '`tasker_workers{state="lost"}`', "who has missed the beats of a whole lease"),
    ("dlq_depth", "`tasker_dlq_pending_investigations`", "another name of the same"),
)
"""(published, here, why)."""
ALERTS_ELSEWHERE = (
    (
        "TaskerCommandChannelSaturated",
        "`TaskerChannelSaturated`",
        "no commands wait in memory; what does is in a worker",
    ),
    ("TaskerPGMQQueueDepthHigh", "`TaskerQueueDepthHigh`", "for every messaging backend"),
    ("CheckpointHistoryGrowth", "not applicable", "of a checkpoint's history the last twenty entries are kept"),
)
"""(published, here, why)."""
LABELS_LEFT_OUT: tuple[tuple[str, str, str], ...] = (
    (
        "`correlation_id`, `step_name`",
        "all of tasks and steps",
        "each task would make series of its own, see above",
    ),
    ("`worker_id`", "all of workers", "Prometheus tells processes apart itself, by `instance`"),
    ("`handler_type`", "`tasker_steps_active_executions`", "all handlers are Python"),
    (
        "`namespace`",
        "`tasker_steps_claimed_total`, `tasker_step_claim_duration_milliseconds`",
        "one claim takes steps of all namespaces that a worker serves, and its answer names their templates alone;"
        " `tasker_steps_executions_total` has it",
    ),
    (
        "`claim_method` with `event`, `poll`",
        "the same two",
        "that is known of the look that found a message, not of its step: `tasker_polling_messages_found_total` counts"
        " those that nothing had announced",
    ),
    (
        "`result_type` with `cancelled`, `skipped`",
        "`tasker_step_results_processed_total`, `tasker_step_result_processing_duration_milliseconds`",
        "such a step brings no result",
    ),
)
