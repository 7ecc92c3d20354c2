"""Rules of compensations."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.template.compensations import UNDO, may_be_undone
from tasker.template.documents import StepDraft
from tasker.template.failure_words import COMPENSATE
from tasker.template.graph import DependencyGraph


def something_is_undone(graph: DependencyGraph, document: Mapping[str, Any]) -> None:
    """Check that a template with `on_failure: compensate` has a step with `compensate`."""
    steps = graph.steps.values()
    if not graph.complete or any(step.reading.has(*step.path, "compensate") for step in steps):
        return
    hint = "write `compensate: {handler: ...}` on the steps with an effect"
    message = "no step has `compensate`, so that there is nothing to undo"
    for step in steps:
        if step.values.get("on_failure") == COMPENSATE and step.made_for is None:
            step.report("T214", message, step.location("on_failure"), hint)
            return
    if document.get("on_failure") == COMPENSATE:
        reading = next(iter(steps)).reading
        reading.report.add("T214", message, reading.value("on_failure"), hint)


def fit_their_steps(graph: DependencyGraph) -> None:
    """Check that `compensate` is on steps that run a handler once."""
    for step in graph.steps.values():
        if "compensate" not in step.values or step.type is None or step.made_for is not None:
            continue
        place = step.reading.key(*step.path, "compensate")
        if step.at_rest:
            step.report("T215", "a step of `finally` is not undone", place, "remove `compensate`")
        elif "for_each" in step.values or step.type.is_pattern:
            message = f"`{step.name}` has many instances, and `compensate` would run once"
            hint = "write `compensate` on the convergence below it, which has the results of all instances"
            step.report("T215", message, place, hint)
        elif not may_be_undone(step.type):
            hint = "write `compensate` on a step with a handler of its own"
            step.report("T215", f"the effect of a step with `type: {step.type}` cannot be undone", place, hint)


def names_are_free(graph: DependencyGraph, written: Mapping[str, StepDraft]) -> None:
    """Check that no step has the name of a compensation."""
    for step in graph.steps.values():
        if step.undoes is not None and (other := written.get(step.name)) is not None:
            message = f"`{other.name}` is the name of the compensation of `{step.undoes}`"
            other.report("T216", message, other.name_location(), f"choose another name; names with `{UNDO}` are taken")
