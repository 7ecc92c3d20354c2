"""What plugins add to a process: asked once, checked, and left out with a line in the log where it cannot be used."""

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
    """The metrics of plugins. `taken` are the names that the process has for metrics of its own."""
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
    """(plugin, what it offers as a router), asked now."""
    return _each(plugins, "tasker_routers")


@dataclass(frozen=True, slots=True)
class PluginRules:
    """The rules of one plugin, as the compiler of templates asks them."""

    plugin: str
    plugins: PluginHost

    def judge(self, plan: Plan) -> list[RuleFinding]:
        """What the plugin finds. Raises `RuleFailed` where it fails, does not answer, or answers something else."""
        try:
            answer = self.plugins.ask(self.plugin, RULES, plan)
        except PluginFailed as error:
            raise RuleFailed(str(error)) from error
        found = _listed(answer)
        if wrong := [each for each in found if not isinstance(each, RuleFinding)]:
            raise RuleFailed(f"{RULES}() gives {wrong[0]!r}, and must give a list of tasker.hookspecs.RuleFinding")
        return found


def rules_of(plugins: PluginHost) -> list[PluginRules]:
    """The rules that plugins add to those of templates."""
    return [PluginRules(name, plugins) for name in plugins.having(RULES)]


def _each(plugins: PluginHost, hook: str) -> Iterator[tuple[str, Any]]:
    for plugin, answer in plugins.answers(hook):
        yield from ((plugin, each) for each in _listed(answer))


def _listed(answer: Any) -> list[Any]:
    return [] if answer is None else [*answer] if isinstance(answer, (list, tuple)) else [answer]
