"""Rules of when steps begin."""

from __future__ import annotations

from tasker.template.diagnostics import did_you_mean, listed
from tasker.template.graph import DependencyGraph
from tasker.template.plan import Ancestry
from tasker.template.step_types import Origin


def one_time_for_each_step(graph: DependencyGraph) -> None:
    """Check that no step has both `delay` and `not_before`."""
    for step in graph.steps.values():
        if "delay" in step.values and "not_before" in step.values:
            message = "`delay` and `not_before` exclude each other"
            step.report("T062", message, step.location("not_before"), "write one of them")


def not_before_reads_a_step_above(graph: DependencyGraph) -> None:
    """Check that `not_before` reads the result of a step that is complete by then."""
    above: Ancestry | None = None
    for step in graph.steps.values():
        name = step.values.get("not_before", {}).get("step")
        if name is None:
            continue
        above = above or Ancestry(graph.parents)
        names = [other for other in graph.order if other in above.of(step.name)]
        if name not in names:
            hint = did_you_mean(name, names) or f"steps above: {listed(names) or 'none'}"
            step.report("T061", f"`{name}` is not a step above `{step.name}`", step.location("not_before"), hint)
        elif graph.is_from(name, Origin.BATCH):
            message = f"`{name}` has an instance for each batch, and none of them is meant"
            step.report("T061", message, step.location("not_before"), "let the step that joins them return the time")
