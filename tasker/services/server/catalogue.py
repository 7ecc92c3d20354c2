"""Metrics of a server: of the fleet, read from the database, and of its own process."""

from __future__ import annotations

from tasker.services.server.exposition import Catalogue, Described

OF_BREAKERS: Catalogue = {
    "tasker_circuit_breaker_state": Described(
        "gauge", "A circuit breaker of this process: 0 closed, 1 half-open, 2 open.", ("component",)
    ),
    "tasker_circuit_breaker_rejections_total": Described(
        "counter", "Calls that an open circuit breaker refused.", ("component",)
    ),
}
"""Metrics of each process."""
OF_THE_FLEET: Catalogue = {
    "tasker_tasks_active": Described(
        "gauge", "Tasks that have not ended, by state; at most 100000 are counted.", ("state",)
    ),
    "tasker_tasks_submitted_last_minute": Described("gauge", "Tasks submitted within the last minute."),
    "tasker_step_failures_last_minute": Described("gauge", "Attempts that failed within the last minute."),
    "tasker_steps_ready": Described(
        "gauge", "Ready steps that wait for room in the queue of their namespace.", ("namespace",)
    ),
    "tasker_steps_paused": Described("gauge", "Ready steps that a pause holds.", ("namespace",)),
    "tasker_queue_depth": Described("gauge", "Steps in the queue of a namespace.", ("namespace",)),
    "pgmq_queue_depth": Described("gauge", "tasker_queue_depth, by the queue's name.", ("queue_name",)),
    "pgmq_queue_max_depth": Described(
        "gauge", "From so many steps in a queue, and ready for it, on this server refuses new tasks.", ("queue_name",)
    ),
    "tasker_queue_age_seconds": Described(
        "gauge",
        "How long a step of the 200 tasks that have been open longest is in the queue of a namespace, at most.",
        ("namespace",),
    ),
    "tasker_steps_taken_total": Described("counter", "Steps that have left the queue of a namespace.", ("namespace",)),
    "tasker_workers_recommended": Described(
        "gauge", "Workers that a namespace should have, by what waits and how fast.", ("namespace",)
    ),
    "tasker_workers": Described(
        "gauge", "Processes by kind (worker, orchestrator) and state (live, draining, lost).", ("kind", "state")
    ),
    "tasker_workers_active": Described("gauge", 'tasker_workers{kind="worker",state="live"}; 0 without any.'),
    "tasker_worker_slots": Described("gauge", "Steps that the live workers can run at the same time."),
    "tasker_worker_steps": Described("gauge", "Steps that the live workers have in hand, as of their last beats."),
    "tasker_steps_held_by_breaker": Described(
        "gauge", "Steps that an open circuit breaker of a handler puts off.", ("breaker",)
    ),
    "tasker_pauses": Described("gauge", "Pauses that are in force."),
    "tasker_dlq_pending_investigations": Described(
        "gauge", "Dead letters that wait for somebody; at most 100000 are counted."
    ),
    "tasker_dlq_entries_created_total": Described("counter", "Dead letters that there ever were."),
    "tasker_dlq_time_in_queue_hours": Described(
        "histogram", "How long a dead letter waited until it was dealt with, of all that there ever were."
    ),
    "tasker_checkpoint_age_seconds": Described(
        "gauge",
        "How long ago a running step that writes checkpoints has written the last one, at most; of the 200 tasks that"
        " have been open longest.",
        ("namespace",),
    ),
    "tasker_repairs_total": Described(
        "counter", "What sweeps have repaired, by kind; stays 0 in a healthy fleet.", ("kind",)
    ),
}
"""Metrics of the fleet, the same on every server."""
OF_ITS_PROCESS: Catalogue = {
    "tasker_info": Described("gauge", "The release of this process; always 1.", ("version",)),
    "tasker_database_up": Described(
        "gauge", "1 when the database answered; without it there are no numbers of the fleet."
    ),
    "tasker_db_pool_connections": Described(
        "gauge", "Connections of this process, by state (active, idle, max).", ("pool", "state")
    ),
    "tasker_db_pool_connections_active": Described("gauge", 'tasker_db_pool_connections{state="active"}.'),
    "tasker_db_pool_connections_idle": Described("gauge", 'tasker_db_pool_connections{state="idle"}.'),
    "tasker_database_pool_active": Described("gauge", 'tasker_db_pool_connections{state="active"}.'),
    "tasker_database_pool_max": Described("gauge", 'tasker_db_pool_connections{state="max"}.'),
    "tasker_db_pool_wait_duration_milliseconds": Described("histogram", "A wait for a connection of this process."),
    "tasker_db_pool_waiting": Described("gauge", "Callers in this process that wait for a connection."),
    "tasker_db_pool_acquires_total": Described("counter", "Connections that this process lent."),
    "tasker_db_pool_slow_acquires_total": Described("counter", "Those of them that were waited for too long."),
    "tasker_db_pool_acquire_errors_total": Described("counter", "Callers that got none in time."),
    "tasker_auth_requests_total": Described(
        "counter",
        "Requests of this process, by what was shown and whether it was good.",
        ("method", "result"),
    ),
    "tasker_auth_failures_total": Described(
        "counter", "Requests of this process whose credentials were missing or wrong, by reason.", ("reason",)
    ),
    "tasker_auth_jwt_verification_duration_milliseconds": Described(
        "histogram", "The check of a token by this process, with the fetching of published keys.", ("result",)
    ),
    "tasker_permission_denials_total": Described(
        "counter", "Requests of this process that were not permitted, by permission.", ("permission",)
    ),
    "api_circuit_breaker_state": Described(
        "gauge", "The breaker around the database of this process: 0 closed, 1 half-open, 2 open."
    ),
    **OF_BREAKERS,
}
CATALOGUE: Catalogue = {**OF_ITS_PROCESS, **OF_THE_FLEET}
