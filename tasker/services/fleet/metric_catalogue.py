"""Names and meanings of metrics, and their Prometheus text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import NamedTuple

from tasker.metrics import Metric

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Described(NamedTuple):
    """Metric of Tasker: kind (`gauge`, `counter` or `histogram`), description, and names of its labels."""

    kind: str
    meaning: str
    labels: tuple[str, ...] = ()


Catalogue = Mapping[str, Described]
"""Descriptions of metrics by name."""


class Sample(NamedTuple):
    """One value. All samples of a name are consecutive in the text."""

    name: str
    value: float
    labels: Mapping[str, str] = {}


def exposition(catalogue: Catalogue, samples: Iterable[Sample]) -> str:
    """Return the samples as text, sorted by name. Raises `KeyError` for a name that is not in the catalogue."""
    by_name = groupby(sorted(samples, key=lambda sample: sample.name), key=lambda sample: sample.name)
    return "".join(line + "\n" for name, group in by_name for line in _family(name, catalogue[name], group))


def families(metrics: Iterable[Metric]) -> str:
    """Return metrics that hold their own values, such as those of plugins, as text."""
    return "".join(line + "\n" for metric in metrics for line in _head_lines(metric))


def _head_lines(metric: Metric) -> Iterator[str]:
    yield f"# HELP {metric.name} {metric.meaning}".replace("\n", " ")
    yield f"# TYPE {metric.name} {metric.kind}"
    yield from (_line(metric.name + ending, labels, value) for ending, labels, value in metric.samples())


def _family(name: str, described: Described, samples: Iterable[Sample]) -> Iterator[str]:
    yield f"# HELP {name} {described.meaning}"
    yield f"# TYPE {name} {described.kind}"
    for sample in samples:
        yield _line(name, sample.labels, sample.value)


def _line(name: str, labels: Mapping[str, str], value: float) -> str:
    label_text = ",".join(f'{label}="{_escaped(text)}"' for label, text in labels.items())
    return f"{name}{{{label_text}}} {value:.17g}" if label_text else f"{name} {value:.17g}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")


OF_BREAKERS: Catalogue = {
    "tasker_circuit_breaker_state": Described(
        "gauge", "A circuit breaker of this process: 0 closed, 1 half-open, 2 open.", ("component",)
    ),
    "tasker_circuit_breaker_rejections_total": Described(
        "counter", "Calls refused by an open circuit breaker.", ("component",)
    ),
}
"""Metrics of each process."""
OF_THE_FLEET: Catalogue = {
    "tasker_tasks_active": Described(
        "gauge", "Tasks that have not ended, by state; at most 100000 are counted.", ("state",)
    ),
    "tasker_tasks_submitted_last_minute": Described("gauge", "Tasks submitted within the last minute."),
    "tasker_step_failures_last_minute": Described("gauge", "Attempts that failed within the last minute."),
    "tasker_steps_ready": Described("gauge", "Ready steps in the backlog of their namespace.", ("namespace",)),
    "tasker_steps_paused": Described("gauge", "Ready steps that are paused.", ("namespace",)),
    "tasker_queue_depth": Described("gauge", "Steps in the queue of a namespace.", ("namespace",)),
    "pgmq_queue_depth": Described("gauge", "tasker_queue_depth, by the queue's name.", ("queue_name",)),
    "pgmq_queue_max_depth": Described(
        "gauge", "Number of enqueued and ready steps at which this server refuses new tasks.", ("queue_name",)
    ),
    "tasker_queue_age_seconds": Described(
        "gauge",
        "Age of the oldest enqueued step per namespace, among the 200 oldest open tasks.",
        ("namespace",),
    ),
    "tasker_steps_taken_total": Described("counter", "Steps that have left the queue of a namespace.", ("namespace",)),
    "tasker_workers_recommended": Described("gauge", "Recommended number of workers per namespace.", ("namespace",)),
    "tasker_workers": Described(
        "gauge", "Processes by kind (worker, orchestrator) and state (live, draining, lost).", ("kind", "state")
    ),
    "tasker_workers_active": Described("gauge", 'tasker_workers{kind="worker",state="live"}; 0 without any.'),
    "tasker_worker_slots": Described("gauge", "Steps that the live workers can run at the same time."),
    "tasker_worker_steps": Described("gauge", "Steps in flight on live workers, as of their last heartbeats."),
    "tasker_steps_held_by_breaker": Described(
        "gauge", "Steps deferred by an open circuit breaker of a handler.", ("breaker",)
    ),
    "tasker_timers_waiting": Described(
        "gauge",
        "Schedules, open tasks with a deadline, and steps that wait for their retry to begin (`delay`, `run_at`), or "
        "without a worker (`type: wait`); counted to 100000.",
        ("kind",),
    ),
    "tasker_timers_late_seconds": Described(
        "gauge", "Time since the longest overdue of these was due; absent if none is.", ("kind",)
    ),
    "tasker_steps_suspended": Described(
        "gauge", "Steps that wait in progress without a worker; counted to 100000.", ("kind",)
    ),
    "tasker_fan_outs_open": Described("gauge", "Steps that wait for child tasks; counted to 100000."),
    "tasker_child_tasks": Described(
        "gauge", "Child tasks of these steps, by what became of them: waiting, running, succeeded, failed.", ("state",)
    ),
    "tasker_incoming_events_unrouted": Described(
        "gauge", "Incoming events that were not compared with waits yet; counted to 100000.", ("namespace",)
    ),
    "tasker_limit_waiting": Described(
        "gauge", "Steps that wait for a permit of a limit; counted to 100000.", ("limit",)
    ),
    "tasker_limit_permits": Described("gauge", "Permits of a limit that steps have; counted to 100000.", ("limit",)),
    "tasker_fair_rounds_total": Described(
        "counter",
        "Rounds of turns in a fair namespace: in each, every flow with waiting steps has its turn.",
        ("namespace",),
    ),
    "tasker_pauses": Described("gauge", "Active pauses."),
    "tasker_dlq_pending_investigations": Described("gauge", "Pending dead letters, counted to 100000."),
    "tasker_dlq_entries_created_total": Described("counter", "Total number of dead letters."),
    "tasker_dlq_time_in_queue_hours": Described("histogram", "Time until a dead letter was resolved."),
    "tasker_checkpoint_age_seconds": Described(
        "gauge",
        "Maximum age of the last checkpoint of a running step that writes checkpoints, among the 200 oldest "
        "open tasks.",
        ("namespace",),
    ),
    "tasker_compensations_total": Described(
        "counter", "Compensations that ended: all effects undone, or not.", ("outcome",)
    ),
    "tasker_repairs_total": Described("counter", "Repairs made by sweeps, by kind; 0 in a healthy fleet.", ("kind",)),
}
"""Metrics of the fleet, the same on every server."""
OF_ITS_PROCESS: Catalogue = {
    "tasker_info": Described("gauge", "The release of this process; always 1.", ("version",)),
    "tasker_database_up": Described("gauge", "1 if the database responded; otherwise there are no fleet metrics."),
    "tasker_db_pool_connections": Described(
        "gauge", "Connections of this process, by state (active, idle, max).", ("pool", "state")
    ),
    "tasker_db_pool_connections_active": Described("gauge", 'tasker_db_pool_connections{state="active"}.'),
    "tasker_db_pool_connections_idle": Described("gauge", 'tasker_db_pool_connections{state="idle"}.'),
    "tasker_database_pool_active": Described("gauge", 'tasker_db_pool_connections{state="active"}.'),
    "tasker_database_pool_max": Described("gauge", 'tasker_db_pool_connections{state="max"}.'),
    "tasker_db_pool_wait_duration_milliseconds": Described("histogram", "A wait for a connection of this process."),
    "tasker_db_pool_waiting": Described("gauge", "Callers in this process that wait for a connection."),
    "tasker_db_pool_acquires_total": Described("counter", "Connections acquired in this process."),
    "tasker_db_pool_slow_acquires_total": Described("counter", "Connection waits that exceeded the slow threshold."),
    "tasker_db_pool_acquire_errors_total": Described("counter", "Connection waits that timed out."),
    "tasker_tenant_submissions_total": Described(
        "counter",
        "Tasks of tenants that this process has submitted; tenants that are not in `tenants.labelled` are `other`.",
        ("tenant",),
    ),
    "tasker_submissions_refused_total": Described(
        "counter",
        "Tasks that this process refused, by the limit: client, template, tenant, or open (tasks of a tenant).",
        ("reason", "tenant"),
    ),
    "tasker_auth_requests_total": Described(
        "counter",
        "Authenticated requests of this process, by kind of credential and result.",
        ("method", "result"),
    ),
    "tasker_auth_failures_total": Described(
        "counter", "Requests of this process with missing or invalid credentials, by reason.", ("reason",)
    ),
    "tasker_auth_jwt_verification_duration_milliseconds": Described(
        "histogram", "Duration of token verification in this process, including key fetches.", ("result",)
    ),
    "tasker_permission_denials_total": Described(
        "counter", "Requests of this process denied for a missing permission, by permission.", ("permission",)
    ),
    "api_circuit_breaker_state": Described(
        "gauge", "The breaker around the database of this process: 0 closed, 1 half-open, 2 open."
    ),
    **OF_BREAKERS,
}
CATALOGUE: Catalogue = {**OF_ITS_PROCESS, **OF_THE_FLEET}
