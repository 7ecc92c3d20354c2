"""The dashboard of Grafana: rows of panels, each of which asks one thing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tools.monitoring.fleet_panels import FLEET
from tools.monitoring.panel import BY_NAME, Panel, quantiles, rate

WIDTH, HEIGHT = 8, 7
SOURCE = {"type": "prometheus", "uid": "${source}"}

ROWS: tuple[tuple[str, tuple[Panel, ...]], ...] = (
    ("Fleet", FLEET),
    (
        "Tasks",
        (
            Panel(
                "Tasks",
                (
                    ("requests", rate("tasker_tasks_requests_total")),
                    ("completions", rate("tasker_tasks_completions_total")),
                    ("failures", rate("tasker_tasks_failures_total")),
                ),
                "ops",
            ),
            Panel("Open tasks", (("{{state}}", "max by (state) (tasker_tasks_active)"),)),
            Panel(
                "Tasks that end in error",
                (("failures", BY_NAME["TaskerTaskFailuresHigh"].signal),),
                "percent",
                "stat",
                "TaskerTaskFailuresHigh",
            ),
            Panel(
                "Submission",
                quantiles("tasker_task_initialization_duration_milliseconds", "task_type"),
                "ms",
            ),
            Panel(
                "The write that ends a task",
                quantiles("tasker_task_finalization_duration_milliseconds", "final_state"),
                "ms",
            ),
            Panel("From creation to end", quantiles("tasker_task_duration_milliseconds", "final_state"), "ms"),
            Panel(
                "Steps enqueued and executed",
                (
                    ("enqueued", rate("tasker_steps_enqueued_total")),
                    ("claimed, {{claim_method}}", rate("tasker_steps_claimed_total", "claim_method")),
                    ("executed", rate("tasker_steps_executions_total")),
                ),
                "ops",
            ),
            Panel(
                "Results by type",
                (("{{result_type}}", rate("tasker_step_results_processed_total", "result_type")),),
                "ops",
            ),
            Panel("Results", quantiles("tasker_step_result_processing_duration_milliseconds", "result_type"), "ms"),
        ),
    ),
    (
        "Workers",
        (
            Panel("Successes", (("{{namespace}}", rate("tasker_steps_successes_total", "namespace")),), "ops"),
            Panel("Failures", (("{{error_type}}", rate("tasker_steps_failures_total", "error_type")),), "ops"),
            Panel(
                "Attempts that fail",
                (("failures", BY_NAME["TaskerAttemptFailuresHigh"].signal),),
                "percent",
                "stat",
                "TaskerAttemptFailuresHigh",
            ),
            Panel("Handlers", quantiles("tasker_step_execution_duration_milliseconds", "namespace"), "ms"),
            Panel("Claims", quantiles("tasker_step_claim_duration_milliseconds", "claim_method"), "ms"),
            Panel(
                "Steps in hand",
                (("slots", "sum(tasker_steps_slots)"), ("in hand", "sum(tasker_steps_active_executions)")),
            ),
            Panel("Writes", quantiles("tasker_sql_query_duration_milliseconds", "function"), "ms"),
        ),
    ),
    (
        "Backpressure",
        (
            Panel(
                "Circuit breakers",
                (
                    ("API", "max(api_circuit_breaker_state)"),
                    ("{{component}}", "max by (component) (tasker_circuit_breaker_state)"),
                ),
                kind="stat",
                alert="TaskerCircuitBreakerOpen",
            ),
            Panel(
                "API rejections",
                (("{{reason}}", f"60 * {rate('api_requests_rejected_total', 'reason')}"),),
                alert="TaskerAPIRejectionsHigh",
            ),
            Panel(
                "Channel saturation",
                (("{{channel}}", "max by (channel) (mpsc_channel_usage_percent)"),),
                "percent",
                alert="TaskerChannelSaturated",
            ),
            Panel(
                "Queue depth",
                (("{{namespace}}", "max by (namespace) (tasker_queue_depth + tasker_steps_ready)"),),
                alert="TaskerQueueDepthHigh",
            ),
            Panel(
                "Wait for a thread",
                (
                    ("the oldest", "max(worker_handler_semaphore_wait_oldest_ms)"),
                    *quantiles("worker_handler_semaphore_wait_ms"),
                ),
                "ms",
                alert="TaskerHandlerWaitTimeHigh",
            ),
            Panel(
                "Storing results",
                (
                    ("slow", rate("ffi_completion_slow_sends_total")),
                    ("refused by the breaker", rate("ffi_completion_circuit_open_rejections_total")),
                ),
                "ops",
            ),
            Panel(
                "Overflows",
                (("{{channel}}", rate("mpsc_channel_full_events_total", "channel")),),
                "ops",
            ),
            Panel(
                "Claim refusals",
                (("{{reason}}", BY_NAME["TaskerWorkerClaimRefusalsHigh"].signal),),
                alert="TaskerWorkerClaimRefusalsHigh",
            ),
        ),
    ),
    (
        "Connections and listeners",
        (
            Panel(
                "Connections in use",
                (("{{instance}}", BY_NAME["TaskerDatabasePoolUtilizationHigh"].signal),),
                "percent",
                alert="TaskerDatabasePoolUtilizationHigh",
            ),
            Panel(
                "Wait for a connection",
                (("mean", BY_NAME["TaskerDatabaseAcquireTimeHigh"].signal),),
                "ms",
                alert="TaskerDatabaseAcquireTimeHigh",
            ),
            Panel(
                "Processes by how they learn of work",
                (
                    ("listen, {{mode}}", "sum by (mode) (tasker_event_listener_active)"),
                    ("poll instead, {{mode}}", "sum by (mode) (tasker_polling_fallback_active)"),
                ),
            ),
            Panel(
                "Lag of notifications",
                (("{{mode}}", "max by (mode) (tasker_event_listener_lag_ms)"),),
                "ms",
                alert="TaskerEventListenerLag",
            ),
            Panel(
                "Looks at queues",
                (
                    ("found", rate("tasker_polling_messages_processed_total")),
                    ("found unannounced", rate("tasker_polling_messages_found_total")),
                    ("failed", rate("tasker_polling_errors_total")),
                ),
                "ops",
            ),
            Panel(
                "Callers who are not let in",
                (("{{reason}}", BY_NAME["TaskerAuthenticationFailures"].signal),),
                alert="TaskerAuthenticationFailures",
            ),
        ),
    ),
    (
        "Dead letters",
        (
            Panel(
                "Pending",
                (("dead letters", BY_NAME["HighPendingDLQInvestigations"].signal),),
                alert="HighPendingDLQInvestigations",
            ),
            Panel("New in an hour", (("dead letters", "max(increase(tasker_dlq_entries_created_total[1h]))"),)),
            Panel(
                "Wait until somebody has dealt with one",
                (("mean", "max(tasker_dlq_time_in_queue_hours_sum) / max(tasker_dlq_time_in_queue_hours_count)"),),
                "h",
                "stat",
            ),
            Panel("Stale tasks", (("found", rate("tasker_staleness_tasks_detected_total")),), "ops"),
            Panel("Search for stale tasks", (("mean", BY_NAME["SlowStalenessDetection"].signal),), "ms"),
            Panel(
                "Oldest checkpoint of a running step",
                (("{{namespace}}", BY_NAME["StaleCheckpoint"].signal),),
                "s",
                alert="StaleCheckpoint",
            ),
        ),
    ),
)
COLORS = {"info": "blue", "warning": "yellow", "critical": "red"}


def dashboard() -> str:
    """All of it, as Grafana imports it."""
    source = {"name": "source", "type": "datasource", "query": "prometheus", "label": "Prometheus"}
    found = {
        "uid": "tasker",
        "title": "Tasker",
        "schemaVersion": 39,
        "refresh": "30s",
        "time": {"from": "now-1h", "to": "now"},
        "templating": {"list": [source]},
        "panels": list(_panels()),
    }
    return json.dumps(found, indent=1) + "\n"


def _panels() -> Sequence[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    y = 0
    for title, panels in ROWS:
        found.append({"id": len(found) + 1, "type": "row", "title": title, "gridPos": _at(0, y, 24, 1), "panels": []})
        y += 1
        for number, panel in enumerate(panels):
            place = _at(number % 3 * WIDTH, y + number // 3 * HEIGHT, WIDTH, HEIGHT)
            found.append({"id": len(found) + 1, **_panel(panel), "gridPos": place})
        y += (len(panels) + 2) // 3 * HEIGHT
    return found


def _at(x: int, y: int, width: int, height: int) -> dict[str, int]:
    return {"x": x, "y": y, "w": width, "h": height}


def _panel(panel: Panel) -> dict[str, Any]:
    bounds = BY_NAME[panel.alert].bounds if panel.alert else ()
    steps = [{"color": COLORS[bound.severity], "value": bound.value} for bound in bounds]
    thresholds = {"mode": "absolute", "steps": [{"color": "green", "value": None}, *steps]}
    return {
        "type": panel.kind,
        "title": panel.title,
        "datasource": SOURCE,
        "targets": [
            {"refId": chr(ord("A") + number), "expr": expression, "legendFormat": legend, "datasource": SOURCE}
            for number, (legend, expression) in enumerate(panel.lines)
        ],
        "fieldConfig": {"defaults": {"unit": panel.unit, "thresholds": thresholds}, "overrides": []},
    }
