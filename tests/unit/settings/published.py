"""The published parameters: path, default, range. Written down apart from the model, so that the model cannot drift.

`{a|b}` in a path stands for each of them. A range is `low-high`; `-` means that none is published.
"""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

from tasker.settings.hooks import IncomingHook

ORCHESTRATOR = "orchestration.event_systems.orchestration"
READINESS = "orchestration.event_systems.task_readiness"
WORKER = "worker.event_systems.worker"
SYSTEMS = f"{{{ORCHESTRATOR}|{READINESS}|{WORKER}}}"
MODES = f"{{{ORCHESTRATOR}|{WORKER}}}"
CHANNELS = "worker.mpsc_channels"

TABLE = f"""
common.backoff.backoff_multiplier                                     2.0                 1-10
common.backoff.default_backoff_seconds                                [1,5,15,30,60]      -
common.backoff.jitter_enabled                                         true                -
common.backoff.jitter_max_percentage                                  0.15                0-1
common.backoff.max_backoff_seconds                                    3600                1-3600
common.cache.enabled                                                  false               -
common.cache.analytics_ttl_seconds                                    60                  1-3600
common.cache.backend                                                  "redis"             -
common.cache.default_ttl_seconds                                      3600                1-86400
common.cache.template_ttl_seconds                                     3600                1-86400
common.cache.moka.max_capacity                                        10000               1-1000000
common.cache.redis.url                                                "redis://localhost:6379" -
common.cache.redis.database                                           0                   0-15
common.cache.redis.max_connections                                    10                  1-500
common.cache.redis.connection_timeout_seconds                         5                   1-60
common.circuit_breakers.default_config.failure_threshold              5                   1-100
common.circuit_breakers.default_config.success_threshold              2                   1-100
common.circuit_breakers.default_config.timeout_seconds                30                  1-300
common.circuit_breakers.component_configs.{{cache|messaging|web}}.failure_threshold  5    1-100
common.circuit_breakers.component_configs.{{cache|messaging|web}}.success_threshold  2    1-100
common.circuit_breakers.component_configs.task_readiness.failure_threshold 10             1-100
common.circuit_breakers.component_configs.task_readiness.success_threshold 3              1-100
common.circuit_breakers.global_settings.metrics_collection_interval_seconds 30            1-3600
common.circuit_breakers.global_settings.min_state_transition_interval_seconds 5.0         0-60
common.database.url                                                   "postgresql://localhost/tasker" -
common.database.pool.max_connections                                  25                  1-1000
common.database.pool.min_connections                                  5                   0-100
common.database.pool.acquire_timeout_seconds                          10                  1-300
common.database.pool.idle_timeout_seconds                             300                 1-3600
common.database.pool.max_lifetime_seconds                             1800                60-86400
common.database.pool.slow_acquire_threshold_ms                        100                 10-60000
common.execution.environment                                          "development"       -
common.mpsc_channels.event_publisher.event_queue_buffer_size          5000                100-100000
common.mpsc_channels.overflow_policy.log_warning_threshold            0.8                 0-1
common.mpsc_channels.overflow_policy.metrics.saturation_check_interval_seconds 30         1-3600
common.queues.backend                                                 "pgmq"              -
common.queues.default_visibility_timeout_seconds                      30                  1-3600
common.queues.orchestration_queues.task_requests                      "orchestration_task_requests" -
common.queues.orchestration_queues.step_results                       "orchestration_step_results" -
common.queues.orchestration_queues.task_finalizations                 "orchestration_task_finalizations" -
common.queues.pgmq.poll_interval_ms                                   500                 10-10000
common.queues.pgmq.queue_depth_thresholds.critical_threshold          5000                -
common.queues.pgmq.queue_depth_thresholds.overflow_threshold          10000               -
common.queues.rabbitmq.url                                            "amqp://guest:guest@localhost:5672/%2F" -
common.queues.rabbitmq.prefetch_count                                 100                 1-65535
common.queues.rabbitmq.heartbeat_seconds                              30                  0-3600
common.task_templates.search_paths                                    ["config/tasks/**/*.{{yml,yaml}}"] -
orchestration.enable_performance_logging                              true                -
orchestration.shutdown_timeout_ms                                     30000               1000-300000
orchestration.batch_processing.enabled                                true                -
orchestration.batch_processing.checkpoint_stall_minutes               15                  1-1440
orchestration.decision_points.enabled                                 true                -
orchestration.decision_points.max_steps_per_decision                  100                 1-10000
orchestration.decision_points.max_decision_depth                      20                  1-100
orchestration.decision_points.warn_threshold_steps                    50                  1-10000
orchestration.decision_points.warn_threshold_depth                    10                  1-100
orchestration.decision_points.enable_metrics                          true                -
orchestration.decision_points.enable_detailed_logging                 false               -
orchestration.dlq.enabled                                             true                -
orchestration.dlq.staleness_detection.enabled                         true                -
orchestration.dlq.staleness_detection.dry_run                         false               -
orchestration.dlq.staleness_detection.batch_size                      100                 1-10000
orchestration.dlq.staleness_detection.detection_interval_seconds      300                 30-3600
orchestration.dlq.staleness_detection.thresholds.waiting_for_dependencies_minutes 60      1-1440
orchestration.dlq.staleness_detection.thresholds.waiting_for_retry_minutes 30             1-1440
orchestration.dlq.staleness_detection.thresholds.steps_in_process_minutes 30              1-1440
orchestration.dlq.staleness_detection.thresholds.task_max_lifetime_hours 24               1-168
orchestration.dlq.staleness_detection.actions.{{auto_transition_to_error|auto_move_to_dlq|emit_events}} true -
orchestration.dlq.staleness_detection.actions.event_channel           "task_staleness_detected" -
{MODES}.deployment_mode                                               "Hybrid"            -
{ORCHESTRATOR}.system_id                                              "orchestration-event-system" -
{WORKER}.system_id                                                    "worker-event-system" -
{MODES}.health.enabled                                              true                -
{MODES}.health.max_consecutive_errors                               10                  1-1000
{MODES}.health.error_rate_threshold_per_minute                      20                  1-10000
{MODES}.health.performance_monitoring_enabled                       true                -
{{{ORCHESTRATOR}|{READINESS}}}.timing.fallback_polling_interval_seconds 5                 1-60
{WORKER}.timing.fallback_polling_interval_seconds                     2                   1-60
{MODES}.timing.health_check_interval_seconds                          30                  1-3600
orchestration.grpc.bind_address                                       "0.0.0.0:9190"      -
worker.grpc.bind_address                                              "0.0.0.0:9191"      -
{{orchestration|worker}}.grpc.{{enable_health_service|enable_reflection}} true            -
{{orchestration|worker}}.grpc.tls_enabled                             false               -
{{orchestration|worker}}.grpc.keepalive_interval_seconds              30                  1-3600
{{orchestration|worker}}.grpc.keepalive_timeout_seconds               20                  1-300
orchestration.grpc.max_concurrent_streams                             200                 1-10000
worker.grpc.max_concurrent_streams                                    1000                1-10000
{{orchestration|worker}}.grpc.max_frame_size                          16384               16384-16777215
{{orchestration|worker}}.web.enabled                                  true                -
orchestration.web.bind_address                                        "0.0.0.0:8080"      -
worker.web.bind_address                                               "0.0.0.0:8081"      -
{{orchestration|worker}}.web.request_timeout_ms                       30000               100-300000
{{orchestration|worker}}.web.config_endpoint_enabled                  false               -
{{orchestration|worker}}.web.auth.enabled                             false               -
{{orchestration|worker}}.web.auth.{{api_key|jwt_private_key|jwt_public_key|jwt_public_key_path}} "" -
{{orchestration|worker}}.web.auth.api_key_header                      "X-API-Key"         -
{{orchestration|worker}}.web.auth.jwt_verification_method             "public_key"        -
{{orchestration|worker}}.web.auth.jwks_url                            ""                  -
{{orchestration|worker}}.web.auth.jwks_refresh_interval_seconds       3600                10-86400
{{orchestration|worker}}.web.auth.permissions_claim                   "permissions"       -
{{orchestration|worker}}.web.auth.{{strict_validation|log_unknown_permissions}} true      -
{{orchestration|worker}}.web.auth.api_keys_enabled                    false               -
{{orchestration|worker}}.web.auth.api_keys                            []                  -
{{orchestration|worker}}.web.auth.jwt_token_expiry_hours              24                  1-720
orchestration.web.auth.jwt_audience                                   "tasker-api"        -
worker.web.auth.jwt_audience                                          "worker-api"        -
orchestration.web.auth.jwt_issuer                                     "tasker-core"       -
worker.web.auth.jwt_issuer                                            "tasker-worker"     -
orchestration.web.database_pools.web_api_pool_size                    20                  1-200
worker.web.database_pools.web_api_pool_size                           10                  1-200
orchestration.web.database_pools.web_api_max_connections              30                  1-500
worker.web.database_pools.web_api_max_connections                     15                  1-500
{{orchestration|worker}}.web.database_pools.web_api_connection_timeout_seconds 30         1-300
{{orchestration|worker}}.web.database_pools.web_api_idle_timeout_seconds 600              1-3600
orchestration.web.database_pools.max_total_connections_hint           50                  1-1000
worker.web.database_pools.max_total_connections_hint                  25                  1-1000
worker.worker_id                                                      "worker-default-001" -
worker.circuit_breakers.ffi_completion_send.failure_threshold         5                   1-100
worker.circuit_breakers.ffi_completion_send.success_threshold         2                   1-100
worker.circuit_breakers.ffi_completion_send.recovery_timeout_seconds  5                   1-300
worker.circuit_breakers.ffi_completion_send.slow_send_threshold_ms    100                 10-10000
{WORKER}.metadata.fallback_poller.enabled                             true                -
{WORKER}.metadata.fallback_poller.polling_interval_ms                 1000                -
{WORKER}.metadata.fallback_poller.supported_namespaces                []                  -
{WORKER}.metadata.in_process_events.deduplication_cache_size          10000               -
{WORKER}.metadata.listener.connection_timeout_seconds                 30                  -
{WORKER}.metadata.listener.event_timeout_seconds                      60                  -
{WORKER}.metadata.listener.retry_interval_seconds                     5                   -
{WORKER}.metadata.listener.max_retry_attempts                         5                   -
{CHANNELS}.domain_events.command_buffer_size                          1000                100-50000
{CHANNELS}.domain_events.log_dropped_events                           true                -
{CHANNELS}.domain_events.shutdown_drain_timeout_ms                    5000                100-60000
{CHANNELS}.ffi_dispatch.callback_timeout_ms                           5000                100-60000
{CHANNELS}.ffi_dispatch.starvation_warning_threshold_ms               10000               1000-300000
{CHANNELS}.handler_dispatch.max_concurrent_handlers                   10                  1-10000
{CHANNELS}.handler_dispatch.handler_timeout_ms                        30000               1000-600000
{CHANNELS}.handler_dispatch.completion_buffer_size                    1000                100-50000
{CHANNELS}.in_process_events.broadcast_buffer_size                    2000                100-100000
{CHANNELS}.in_process_events.dispatch_timeout_ms                      5000                100-60000
{CHANNELS}.in_process_events.log_subscriber_errors                    true                -
worker.orchestration_client.base_url                                  "http://localhost:8080" -
worker.orchestration_client.timeout_ms                                30000               100-300000
worker.orchestration_client.max_retries                               3                   0-10
"""

REFUSED = f"""
common.execution.step_enqueue_batch_size
common.mpsc_channels.ffi.ruby_event_buffer_size
common.pgmq_database.{{enabled|url}}
common.pgmq_database.pool.{{max_connections|min_connections|acquire_timeout_seconds}}
common.pgmq_database.pool.{{idle_timeout_seconds|max_lifetime_seconds|slow_acquire_threshold_ms}}
common.queues.{{naming_pattern|orchestration_namespace|worker_namespace}}
common.system.default_dependent_system
orchestration.batch_processing.{{default_batch_size|max_parallel_batches}}
{READINESS}.{{deployment_mode|system_id|timing.health_check_interval_seconds}}
{READINESS}.health.{{enabled|max_consecutive_errors|error_rate_threshold_per_minute|performance_monitoring_enabled}}
{SYSTEMS}.processing.{{batch_size|max_concurrent_operations|max_retries}}
{SYSTEMS}.processing.backoff.{{initial_delay_ms|max_delay_ms|multiplier|jitter_percent}}
{SYSTEMS}.timing.{{claim_timeout_seconds|processing_timeout_seconds|visibility_timeout_seconds}}
{WORKER}.metadata.fallback_poller.{{batch_size|visibility_timeout_seconds|age_threshold_seconds|max_age_hours}}
{WORKER}.metadata.listener.batch_processing
worker.worker_type
{WORKER}.metadata.in_process_events.ffi_integration_enabled
{CHANNELS}.ffi_dispatch.{{dispatch_buffer_size|completion_timeout_ms|completion_send_timeout_ms}}
{{orchestration|worker}}.mpsc_channels.command_processor.command_buffer_size
{{orchestration|worker}}.mpsc_channels.event_listeners.pgmq_event_buffer_size
{{orchestration|worker}}.mpsc_channels.event_systems.event_channel_buffer_size
{CHANNELS}.event_subscribers.{{completion_buffer_size|result_buffer_size}}
{CHANNELS}.handler_dispatch.dispatch_buffer_size
{CHANNELS}.handler_dispatch.load_shedding.{{enabled|capacity_threshold_percent|warning_threshold_percent}}
"""

OTHER_DEFAULT = {"orchestration.grpc.enabled", "worker.grpc.enabled"}
"""Published as true; false here, because a server that is asked for must exist."""

OWN = {
    *(f"limits.NAME.{own}" for own in ("concurrency", "rate", "burst")),
    "worker.tags",
    *(f"hooks.NAME.{own}" for own in IncomingHook.declared),
    *(f"tenants.NAME.{own}" for own in ("labelled", "max_open_tasks", "max_submits_per_minute")),
    "orchestration.web.max_submits_per_minute",
    *(f"{process}.web.auth.jwks_private_addresses" for process in ("orchestration", "worker")),
    *(f"plugins.{own}" for own in ("enabled", "disabled", "logs.path", "logs.starts")),
    *(
        f"plugins.webhooks.{own}"
        for own in (
            "endpoints",
            "attempts",
            "first_retry_seconds",
            "longest_retry_seconds",
            "callback_secrets",
            "timeout_seconds",
            "payload_limit_bytes",
            "hosts",
            "private_networks",
            "plain_http",
        )
    ),
    *(
        f"plugins.otel.{own}"
        for own in (
            "endpoint",
            "headers",
            "service_name",
            "resource_attributes",
            "share",
            "detail",
            "messages",
            "logs",
            "timeout_seconds",
            "queue",
        )
    ),
    *(f"plugins.sentry.{own}" for own in ("dsn", "environment", "retried", "messages", "events_per_minute")),
    *(
        f"orchestration.web.{own}"
        for own in (
            "root_path",
            "cors_origins",
            "trusted_hosts",
            "max_body_bytes",
            "max_streams",
            "requests_per_second",
            "request_burst",
            "max_connections_per_client",
        )
    ),
    *(f"{process}.web.tls_{file}_path" for process in ("orchestration", "worker") for file in ("certificate", "key")),
    "orchestration.batch_processing.max_batches_per_step",
    "common.circuit_breakers.default_config.preset",
    *(
        f"common.circuit_breakers.component_configs.{name}.{own}"
        for name in ("cache", "messaging", "task_readiness", "web")
        for own in ("preset", "timeout_seconds")
    ),
    "common.database.connect_wait_seconds",
    "common.database.listen_url",
    "common.database.statement_timeout_ms",
    "common.execution.context_limit_bytes",
    *(f"common.retention.{kind}_{limit}" for kind in ("completed", "failed") for limit in ("days", "count")),
    "common.retention.pending_days",
    *(f"common.approvals.{own}" for own in ("link_keys", "link_hours", "url")),
    *(f"common.retention.{own}" for own in ("rules", "events_days", "interval_seconds", "batch_size")),
    "common.log.format",
    "common.execution.enqueue_window",
    "common.execution.max_task_depth",
    "common.execution.max_task_descendants",
    "common.execution.on_blocked",
    "common.execution.result_limit_bytes",
    *(f"common.queues.nats.{name}" for name in ("ack_wait_seconds", "delivery_limit", "prefix", "replicas", "url")),
    *(f"common.queues.{name}.connection_timeout_seconds" for name in ("nats", "rabbitmq", "redis")),
    *(f"common.queues.rabbitmq.{name}" for name in ("delivery_limit", "prefix")),
    *(f"common.queues.redis.{name}" for name in ("max_connections", "prefix", "url")),
    "common.queues.memory.max_depth",
    "common.queues.poll_interval_ms",
    *(f"common.queues.queue_depth_thresholds.{name}_threshold" for name in ("critical", "overflow")),
    "common.failure_storm.failures",
    "common.failure_storm.pauses",
    "common.failure_storm.resume_seconds",
    "common.failure_storm.window_seconds",
    "common.sweep.forget_workers_after_seconds",
    "common.sweep.hint_grace_ms",
    "common.sweep.idle_grace_ms",
    "common.sweep.park_grace_ms",
    "common.sweep.slice",
    "common.sweep.unserved_timeout_seconds",
    "worker.execution.keep_logs",
    "worker.execution.kept_log_lines",
    "worker.execution.loop_lag_warning_ms",
    "worker.execution.result_path",
    "worker.execution.error_rules",
    "worker.execution.threads",
    "worker.handlers.allow",
    "worker.lease.grace_ms",
    "worker.lease.lease_ms",
}
"""Parameters that are Tasker's own."""


def published() -> dict[str, tuple[Any, tuple[float, float] | None]]:
    """Path -> (default, range)."""
    found = {}
    for line in TABLE.strip().splitlines():
        pattern, default, span = line.split()
        bounds = None if span == "-" else tuple(map(float, span.split("-")))
        found.update(dict.fromkeys(_expanded(pattern), (json.loads(default), bounds)))
    return found  # type: ignore[return-value]


def refused() -> list[str]:
    """Published paths that mean nothing here."""
    return [path for line in REFUSED.split() for path in _expanded(line)]


def _expanded(pattern: str) -> list[str]:
    parts = [part.split("|") for part in re.split(r"[{}]", pattern)]
    return ["".join(chosen) for chosen in itertools.product(*parts)]
