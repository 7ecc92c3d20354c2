"""Alerts of what processes stand on: that they answer, their connections, and how they learn of work."""

from __future__ import annotations

from tools.monitoring.alert import Alert, one, two

CONNECTIONS = (
    Alert(
        "TaskerOrchestrationDown",
        'up{job=~"tasker.*"}',
        "==",
        one("critical", 0, "2m"),
        "A process of Tasker that is scraped does not answer",
        "Start it again; its log says why it ended. Its steps are found by the others. Named here is what your jobs are"
        " called in the configuration of Prometheus: `tasker`, or what begins so.",
    ),
    Alert(
        "TaskerComponentCircuitBreakerOpen",
        "max by (component) (tasker_circuit_breaker_state)",
        "==",
        one("warning", 2, "2m"),
        "A circuit breaker of a process is open",
        "The label `component` says what it guards: a handler's breaker puts off its steps, `completion` and"
        " `task_readiness` stand for the database.",
    ),
    Alert(
        "TaskerCircuitBreakerHalfOpen",
        "(api_circuit_breaker_state or tasker_circuit_breaker_state)",
        "==",
        one("warning", 1, "5m"),
        "A circuit breaker tries again and again and does not close",
        "What it guards answers now and then: look at its log, and at the network in between.",
    ),
    Alert(
        "TaskerDatabasePoolUtilizationHigh",
        "100 * tasker_database_pool_active / tasker_database_pool_max",
        ">",
        two(80, 95, "5m", "1m"),
        "Nearly all connections of a server are in use",
        "Look for slow statements (`tasker doctor`); else raise `common.database.pool.max_connections`, or start"
        " another server.",
        " %",
    ),
    Alert(
        "TaskerDatabasePoolExhausted",
        "100 * tasker_database_pool_active / tasker_database_pool_max",
        ">=",
        one("critical", 100, "1m"),
        "All connections of a server are in use",
        "As above; who asks now waits, and is refused after `acquire_timeout_seconds`.",
        " %",
    ),
    Alert(
        "TaskerDatabaseSlowAcquires",
        "100 * sum(rate(tasker_db_pool_slow_acquires_total[5m])) / sum(rate(tasker_db_pool_acquires_total[5m]))",
        ">",
        two(5, 20, "5m", "1m"),
        "Requests wait too long for a connection",
        "The pool is too small, or connections are held for long: look for slow statements.",
        " %",
    ),
    Alert(
        "TaskerDatabaseAcquireErrors",
        "sum(increase(tasker_db_pool_acquire_errors_total[5m]))",
        ">",
        two(0, 50, "1m"),
        "Requests got no connection in time",
        "They were refused. A longer `acquire_timeout_seconds` only hides it.",
        " in five minutes",
    ),
    Alert(
        "TaskerDatabaseAcquireTimeHigh",
        "sum(rate(tasker_db_pool_wait_duration_milliseconds_sum[5m]))"
        " / sum(rate(tasker_db_pool_wait_duration_milliseconds_count[5m]))",
        ">",
        two(50, 200, "5m", "1m"),
        "A request waits long for a connection on average",
        "As for slow acquires.",
        " ms",
    ),
    Alert(
        "TaskerEventListenerDown",
        "tasker_event_listener_active",
        "==",
        one("warning", 0, "1m"),
        "A process does not hear what is announced",
        "It polls instead, so that work goes on and begins later. Its log says why; behind a pooler that lends sessions"
        " set `common.database.listen_url`.",
    ),
    Alert(
        "TaskerEventListenerLag",
        "tasker_event_listener_lag_ms",
        ">",
        one("warning", 100, "10m"),
        "Notifications of the database take long to arrive",
        "Look at the load of the database and of the process: an event loop that is held up hears late.",
        " ms",
    ),
    Alert(
        "TaskerPollingFallback",
        "tasker_polling_fallback_active",
        "==",
        one("warning", 1, "5m"),
        "A process polls in place of a lost listener",
        "As for a listener that is down.",
    ),
    Alert(
        "TaskerModeSwitches",
        "increase(tasker_mode_switches_total[1h])",
        ">",
        one("warning", 20, "5m"),
        "A listener is lost and found again and again",
        "Look for what ends idle connections: a firewall, a pooler, `idle_session_timeout`.",
        " in an hour",
    ),
    Alert(
        "TaskerListenerReconnections",
        "increase(tasker_listener_reconnections_total[1h])",
        ">",
        one("info", 5, "5m"),
        "A listener has come back more often than it should",
        "As above.",
        " in an hour",
    ),
    Alert(
        "TaskerPollingErrors",
        "100 * sum(rate(tasker_polling_errors_total[5m])) / sum(rate(tasker_polling_cycles_total[5m]))",
        ">",
        one("warning", 5, "5m"),
        "Looks at queues fail",
        "Look whether the database and the messaging provider answer (`tasker doctor`, `tasker broker status`).",
        " %",
    ),
    Alert(
        "TaskerPollingSlow",
        "sum(rate(tasker_polling_duration_seconds_sum[5m])) / sum(rate(tasker_polling_duration_seconds_count[5m]))",
        ">",
        one("warning", 10, "5m"),
        "A look at a queue takes ten times as long as a worker pauses between two",
        "The database, or the provider, has too much to do.",
        " s",
    ),
)
