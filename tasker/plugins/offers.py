"""Contributions of plugins to a process: requested once and validated; an invalid one is ignored and logged."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.metrics import Metric
from tasker.contracts.plan import Plan
from tasker.contracts.template_rules import RuleFailed, RuleFinding
from tasker.plugins.process import PluginFailed, PluginHost

RULES = "tasker_template_rules"
_log = logging.getLogger("tasker.plugins")


def metrics_of(plugins: PluginHost, taken: Collection[str]) -> list[Metric]:
    """Return the metrics of plugins. `taken` holds the names of the process's own metrics."""
    names, found = set(taken), list[Metric]()
    for plugin, metric in _each(plugins, "tasker_metrics"):
        if isinstance(metric, Metric) and metric.name not in names:
            names.add(metric.name)
            found.append(metric)
        else:
            reason = "its name is taken" if isinstance(metric, Metric) else "it is no Metric"
            shown = metric.name if isinstance(metric, Metric) else repr(metric)
            _log.error("plugin_metric_refused plugin=%s metric=%s reason=%s", plugin, shown, reason)
    return found


def routers_of(plugins: PluginHost) -> Iterator[tuple[str, Any]]:
    """Yield (plugin, router) for everything that plugins currently return as routers, unvalidated."""
    return _each(plugins, "tasker_routers")


@dataclass(frozen=True, slots=True)
class PluginRules:
    """Rules of one plugin, in the form that the template compiler calls."""

    plugin: str
    plugins: PluginHost

    def judge(self, plan: Plan) -> list[RuleFinding]:
        """Return the plugin's findings. Raises `RuleFailed` if it fails, does not answer, or returns invalid values."""
        try:
            answer = self.plugins.ask(self.plugin, RULES, plan)
        except PluginFailed as error:
            raise RuleFailed(str(error)) from error
        found = _listed(answer)
        if wrong := [each for each in found if not isinstance(each, RuleFinding)]:
            raise RuleFailed(f"{RULES}() gives {wrong[0]!r}, and must give a list of tasker.hookspecs.RuleFinding")
        return found


def rules_of(plugins: PluginHost) -> list[PluginRules]:
    """Return the template rules of all plugins."""
    return [PluginRules(name, plugins) for name in plugins.having(RULES)]


def _each(plugins: PluginHost, hook: str) -> Iterator[tuple[str, Any]]:
    for plugin, answer in plugins.answers(hook):
        yield from ((plugin, each) for each in _listed(answer))


def _listed(answer: Any) -> list[Any]:
    return [] if answer is None else [*answer] if isinstance(answer, (list, tuple)) else [answer]
