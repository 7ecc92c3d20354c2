"""Trace context of an attempt's handler, as provided by a plugin."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tasker.contracts.tracing import TraceContext, TraceOf, checked
from tasker.plugins.process import PluginHost

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
            told = place(task_uuid, step_uuid, token, before[0])
            found = submitted if told is None else checked(told, before[1])
        except Exception as error:
            plugins.failed(plugin, HOOK, error)
            return submitted
        plugins.succeeded(plugin, HOOK)
        return found

    return trace


_NOWHERE = (None, None)
