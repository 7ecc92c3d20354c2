"""What plugins add to a process: asked once, checked, and left out with a line in the log where it cannot be used."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator
from typing import Any

from tasker.contracts.metrics import Metric
from tasker.plugins.process import Plugins

_log = logging.getLogger("tasker.plugins")


def metrics_of(plugins: Plugins, taken: Collection[str]) -> list[Metric]:
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


def _each(plugins: Plugins, hook: str) -> Iterator[tuple[str, Any]]:
    for plugin, answer in plugins.answers(hook):
        yield from ((plugin, each) for each in (answer if isinstance(answer, (list, tuple)) else [answer]))
