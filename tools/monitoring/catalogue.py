"""Every metric that `/metrics` of some process tells: those of the core, and those of the plugin `prometheus`."""

from __future__ import annotations

from dataclasses import dataclass

from tasker.api.process.metrics import CATALOGUE as OF_PROCESSES
from tasker.services.server.metrics import CATALOGUE as OF_SERVERS
from tasker_prometheus.table import ROWS

VALUES = {
    "breaker": "the breakers of handlers",
    "channel": "handler_dispatch, completion, domain_events, subscribers (the one that most events wait for)",
    "component": "the breakers of the process, those of handlers among them; of a channel: worker",
    "hook": "the hooks",
    "kind": "worker, orchestrator; of repairs: the kinds of repair",
    "method": "disabled, jwt, api_key",
    "namespace": "the namespaces",
    "part": "events, breakers, services, plugins, steps",
    "permission": "the permissions",
    "plugin": "the plugins that are on",
    "pool": "tasker",
    "reason": "completion_buffer, completion_breaker, fenced, no_place",
    "service": "the services of the process",
    "state": "the states of what is counted",
    "version": "the release",
}
"""What labels of the core hold; each has few values."""


@dataclass(frozen=True, slots=True)
class Told:
    """A metric, with its labels and what they hold, and who tells it: `server`, `process` or `plugin`.

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
    found = {}
    for teller, catalogue in (("server", OF_SERVERS), ("process", OF_PROCESSES)):
        for name, (kind, meaning, labels) in catalogue.items():
            tellers = (*found[name].tellers, teller) if name in found else (teller,)
            found[name] = Told(name, kind, meaning, tuple((each, VALUES[each]) for each in labels), tellers)
    return list(found.values())


def _plugin() -> list[Told]:
    return [Told(row.name, row.kind, row.meaning, row.label_values, ("plugin",), row.where) for row in ROWS]


METRICS = {each.name: each for each in (*_core(), *_plugin())}
SERIES = {series: metric for metric in METRICS.values() for series in metric.series}
