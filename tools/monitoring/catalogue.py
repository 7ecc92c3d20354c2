"""Every metric that `/metrics` of some process tells: those of the core, and those of the plugin `prometheus`."""

from __future__ import annotations

from dataclasses import dataclass

from tasker.process.metrics import PROCESS_CATALOGUE as OF_PROCESSES
from tasker.services.fleet.metric_catalogue import OF_ITS_PROCESS, OF_THE_FLEET
from tasker_prometheus.other_names import SAME
from tasker_prometheus.table import ROWS

VALUES = {
    "breaker": "the breakers of handlers",
    "channel": "handler_dispatch, completion, domain_events, subscribers (the one that most events wait for)",
    "component": "the breakers of the process, those of handlers among them",
    "hook": "the hooks",
    "limit": "the limits of steps, by name",
    "kind": "worker, orchestrator",
    "method": "disabled, jwt, api_key; none: nothing that is taken here",
    "mode": "hybrid, event_driven, polling",
    "namespace": "the namespaces",
    "outcome": "fired, queued, skipped, missed, refused",
    "part": "events, breakers, services, plugins, steps",
    "permission": "the permissions",
    "plugin": "the plugins that are on",
    "pool": "tasker",
    "reason": "completion_buffer, completion_breaker, fenced, no_place",
    "queue_name": "the queues of the namespaces",
    "result": "success, failure",
    "service": "the services of the process",
    "step": "the steps of the templates",
    "template": "the templates",
    "tenant": "the tenants that are `labelled`, other",
    "version": "the release",
}
"""What labels of the core hold; each has few values."""
VALUES_OF = {
    ("tasker_timers_late_seconds", "kind"): "retry, begin, deadline, schedule, wait",
    ("tasker_timers_waiting", "kind"): "retry, begin, deadline, schedule, wait",
    ("tasker_steps_suspended", "kind"): "time, event, person, task",
    ("tasker_child_tasks", "state"): "waiting, running, succeeded, failed",
    ("mpsc_channel_capacity", "component"): "worker",
    ("mpsc_channel_full_events_total", "component"): "worker",
    ("mpsc_channel_usage_percent", "component"): "worker",
    ("mpsc_channel_saturation", "component"): "worker",
    (
        "tasker_auth_failures_total",
        "reason",
    ): "missing, malformed, not_taken, expired, invalid_token, unknown_permissions, unknown_key",
    ("tasker_submissions_refused_total", "reason"): "client, template, tenant, open",
    ("tasker_db_pool_connections", "state"): "active, idle, max",
    ("tasker_repairs_total", "kind"): "the kinds of repair",
    ("tasker_tasks_active", "state"): "the states of a task",
    ("tasker_workers", "state"): "live, draining, lost",
}
"""What they hold of one metric, where that differs."""


@dataclass(frozen=True, slots=True)
class Told:
    """A metric, with its labels and what they hold, and who tells it: `fleet` (each server, the same), `server`,
    `process` or `plugin`.

    `counted_by` says which process the plugin counts it in.
    """

    name: str
    kind: str
    meaning: str
    labels: tuple[tuple[str, str], ...]
    tellers: tuple[str, ...]
    counted_by: str = ""

    @property
    def series(self) -> tuple[str, ...]:
        """The names that stand in an expression."""
        endings = ("_bucket", "_sum", "_count") if self.kind == "histogram" else ("",)
        return tuple(self.name + ending for ending in endings)


def _core() -> list[Told]:
    found: dict[str, Told] = {}
    tables = (("fleet", OF_THE_FLEET), ("server", OF_ITS_PROCESS), ("process", OF_PROCESSES))
    for teller, catalogue in tables:
        for name, (kind, meaning, labels) in catalogue.items():
            tellers = (*found[name].tellers, teller) if name in found else (teller,)
            held = tuple((each, VALUES_OF.get((name, each)) or VALUES[each]) for each in labels)
            found[name] = Told(name, kind, meaning, held, tellers)
    return list(found.values())


def _plugin() -> list[Told]:
    return [Told(row.name, row.kind, row.meaning, row.label_values, ("plugin",), row.where) for row in (*ROWS, *SAME)]


METRICS = {each.name: each for each in (*_core(), *_plugin())}
SERIES = {series: metric for metric in METRICS.values() for series in metric.series}
