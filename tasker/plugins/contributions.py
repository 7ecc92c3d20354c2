"""Contributions of plugins: metrics, routers, rules of templates, built-in steps, trace contexts."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import field
from typing import TYPE_CHECKING, Any

from tasker.dataclasses import dataclass
from tasker.logging.trace_context import TraceContext, TraceOf, checked
from tasker.metrics import Metric
from tasker.plugins.host import PluginFailed, PluginHost
from tasker.template.builtin import BUILTIN, PREFIX, BuiltinStep
from tasker.template.plan import Plan
from tasker.template.plugin_rules import RuleFailed, RuleFinding

if TYPE_CHECKING:
    from tasker.handlers.builtin import BuiltinHandler

RULES, HANDLERS = "tasker_template_rules", "tasker_handlers"
_log = logging.getLogger("tasker.plugins")


def metrics_of(plugins: PluginHost, taken: Collection[str]) -> list[Metric]:
    """Return the metrics of plugins. `taken` holds the names of the process's own metrics."""
    names, metrics = set(taken), list[Metric]()
    for plugin, metric in _each(plugins, "tasker_metrics"):
        if isinstance(metric, Metric) and metric.name not in names:
            names.add(metric.name)
            metrics.append(metric)
        else:
            reason = "its name is taken" if isinstance(metric, Metric) else "it is no Metric"
            metric_name = metric.name if isinstance(metric, Metric) else repr(metric)
            _log.error("plugin_metric_refused plugin=%s metric=%s reason=%s", plugin, metric_name, reason)
    return metrics


def routers_of(plugins: PluginHost) -> Iterator[tuple[str, Any]]:
    """Yield (plugin, router) for everything that plugins currently return as routers, unvalidated."""
    return _each(plugins, "tasker_routers")


def handlers_of(plugins: PluginHost) -> dict[str, type[BuiltinHandler]]:
    """Return the handlers of built-in steps of all plugins, by name; one that cannot be used is logged and left out."""
    return {handler.handler_name: handler for _, handler in _handlers(plugins)}


def _handlers(plugins: PluginHost) -> Iterator[tuple[str, type[BuiltinHandler]]]:
    taken: set[str] = set()
    for plugin, offer in _each(plugins, HANDLERS):
        reason = _refusal(plugin, offer, taken)
        if reason is None:
            taken.add(offer.handler_name)
            yield plugin, offer
        else:
            _log.error("plugin_handler_refused plugin=%s handler=%r reason=%s", plugin, offer, reason)


def _refusal(plugin: str, offer: Any, taken: Collection[str]) -> str | None:
    from tasker.handlers.builtin import BuiltinHandler  # needed for plugins with handlers only

    if not (isinstance(offer, type) and issubclass(offer, BuiltinHandler)):
        return "expected a subclass of tasker.step_handler.BuiltinHandler"
    name = offer.handler_name
    if not name or not isinstance(getattr(offer, "step", None), BuiltinStep):
        return "handler_name or step is missing"
    if name in taken:
        return "its name is taken"
    if name.startswith(PREFIX) and (name not in BUILTIN or BUILTIN[name].plugin != plugin):
        return f"names with {PREFIX} are Tasker's own"
    return None


@dataclass(frozen=True, slots=True)
class PluginRules:
    """Rules and steps of one plugin, in the form that the template compiler uses."""

    plugin: str
    plugins: PluginHost
    steps: Mapping[str, BuiltinStep] = field(default_factory=dict)

    def judge(self, plan: Plan) -> list[RuleFinding]:
        """Return the plugin's findings. Raises `RuleFailed` if it fails, does not answer, or returns invalid values."""
        if self.plugin not in self.plugins.having(RULES):
            return []
        try:
            answer = self.plugins.ask(self.plugin, RULES, plan)
        except PluginFailed as error:
            raise RuleFailed(str(error)) from error
        findings = _listed(answer)
        if wrong := [finding for finding in findings if not isinstance(finding, RuleFinding)]:
            raise RuleFailed(
                f"{RULES}() gives {wrong[0]!r}, and must give a list of tasker.template.plugin_rules.RuleFinding"
            )
        return findings


def rules_of(plugins: PluginHost) -> list[PluginRules]:
    """Return the template rules and the built-in steps of all plugins."""
    steps: dict[str, dict[str, BuiltinStep]] = {}
    for plugin, handler in _handlers(plugins):
        steps.setdefault(plugin, {})[handler.handler_name] = handler.step
    return [PluginRules(name, plugins, steps.get(name, {})) for name in sorted({*plugins.having(RULES), *steps})]


def _each(plugins: PluginHost, hook: str) -> Iterator[tuple[str, Any]]:
    for plugin, answer in plugins.answers(hook):
        yield from ((plugin, contribution) for contribution in _listed(answer))


def _listed(answer: Any) -> list[Any]:
    return [] if answer is None else [*answer] if isinstance(answer, (list, tuple)) else [answer]


HOOK = "tasker_attempt_trace"


def trace_of(plugins: PluginHost) -> TraceOf | None:
    """Return a function that calls the first plugin with a trace function; None if there is none."""
    for plugin, place in plugins.answers(HOOK):
        if callable(place):
            return _asking(plugins, plugin, place)
        plugins.failed(plugin, HOOK, TypeError(f"it answers {place!r:.80}, and must answer a function"))
    return None


def _asking(plugins: PluginHost, plugin: str, place: Callable[..., Any]) -> TraceOf:
    """Return a trace function that falls back to the submission's trace context if the plugin fails."""

    def trace(task_uuid: str, step_uuid: str, token: int, submitted: TraceContext | None) -> TraceContext | None:
        if not plugins.is_on(plugin):
            return submitted
        before = submitted or _NOWHERE
        try:
            answer = place(task_uuid, step_uuid, token, before[0])
            context = submitted if answer is None else checked(answer, before[1])
        except Exception as error:
            plugins.failed(plugin, HOOK, error)
            return submitted
        plugins.succeeded(plugin, HOOK)
        return context

    return trace


_NOWHERE = (None, None)
