"""Rules of steps that wait without a worker."""

from __future__ import annotations

from typing import Final

from tasker.template.graph import DependencyGraph
from tasker.template.wait_keys import OF_WAITS

WITHOUT_WORKER: Final = (
    *("handler", "inputs", "result_schema", "retry", "timeout_seconds", "execution", "on_worker_lost"),
    *("circuit_breaker", "lifecycle", "system_dependency"),
    *("concurrency", "rate_limit", "limits", "requires", "slots"),
)
"""Keys of steps that a worker runs."""


def waits_have_an_end(graph: DependencyGraph) -> None:
    """Check that each step that waits has one end, and only keys with a meaning for it."""
    for step in graph.steps.values():
        if step.type is None or step.made_for is not None:
            continue
        waits = step.type.traits.waits
        for key in sorted(OF_WAITS):
            if key in step.values and not waits:
                message = f"`{key}` belongs to a step that waits, and `{step.name}` is a {step.type} step"
                hint = "write `type: wait`" if step.type.is_plain else "add a step with `type: wait` before it"
                step.report("T141", message, step.reading.key(*step.path, key), hint)
        if not waits:
            continue
        for key in WITHOUT_WORKER:
            if step.reading.has(*step.path, key):
                message = f"`{key}` has no effect on a {step.type} step, which no worker runs"
                step.report("T141", message, step.reading.key(*step.path, key), "remove it")
        if "for" in step.values and "until" in step.values:
            message = "`for` and `until` exclude each other"
            step.report("T140", message, step.location("until"), "write one of them")
        elif not any(step.reading.has(*step.path, key) for key in ("for", "until")):
            hint = "write `for: 3d`, or `until: input.trip.starts_at`"
            step.report("T140", f"`{step.name}` does not say how long it waits", step.location("type"), hint)
