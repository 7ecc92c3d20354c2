"""Rules of failure paths."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.template.diagnostics import did_you_mean, listed
from tasker.template.failure_paths import branch_of
from tasker.template.failure_words import SKIP_CASCADE
from tasker.template.graph import DependencyGraph
from tasker.template.step_types import DEFAULT


def words_agree(graph: DependencyGraph, document: Mapping[str, Any]) -> None:
    """Check that a step and the template each say once what a failure means."""
    for step in graph.steps.values():
        if step.made_for is None and step.values.get("optional") and "on_failure" in step.values:
            message = "`optional: true` and `on_failure` both say what a failure means"
            step.report("T150", message, step.reading.key(*step.path, "on_failure"), "keep one of them")
    if document.get("completion") == "partial" and document.get("on_failure", SKIP_CASCADE) != SKIP_CASCADE:
        reading = next(iter(graph.steps.values())).reading if graph.steps else None
        if reading is not None:
            message = "`completion: partial` and `on_failure` both say what a failure means"
            hint = "`completion: partial` is `on_failure: skip_cascade` for every step: keep one of them"
            reading.report.add("T150", message, reading.key("on_failure"), hint)


def branches_exist(graph: DependencyGraph) -> None:
    """Check that the step of `on_failure: {run: STEP}` exists, is another step, and belongs to one step."""
    owners: dict[str, str] = {}
    for step in graph.steps.values():
        branch = branch_of(step.values)
        if branch is None or step.made_for is not None:
            continue
        place = step.location("on_failure", "run")
        if branch == step.name:
            step.report(
                "T151", f"`{branch}` would run itself after its failure", place, "write `retry`, or another step"
            )
        elif branch not in graph.steps:
            hint = did_you_mean(branch, graph.steps) or f"steps: {listed(graph.steps)}"
            step.report("T151", f"there is no step `{branch}`", place, hint)
        elif branch in owners:
            message = f"`{branch}` already runs when `{owners[branch]}` fails"
            step.report("T152", message, place, "give each step a step of its own; both may have one handler")
        else:
            owners[branch] = step.name
        if step.type is not None and (step.type.is_pattern or "for_each" in step.values):
            message = f"`{step.name}` has many instances, and `{branch}` would run once"
            hint = "write `continue` or `skip_cascade`, and let a convergence look at the results"
            step.report("T153", message, place, hint)


def branches_stand_alone(graph: DependencyGraph) -> None:
    """Check that a failure branch waits for nothing else, and that no step of it creates steps."""
    for name in graph.order:
        step = graph.steps[name]
        owner = step.handles
        for parent in step.depends_on if owner is not None else ():
            if parent != owner and parent in graph.steps and graph.steps[parent].made_for is None:
                message = f"`{step.title}` runs when `{owner}` fails, and cannot wait for `{parent}`"
                step.report("T154", message, step.dependency_location(parent), f"remove `{parent}`")
        if name in graph.failure_branches and step.type is not None and step.type is not DEFAULT:
            first = name if owner is not None else next(p for p in graph.parents[name] if p in graph.failure_branches)
            message = f"`{step.title}` exists only after a failure, and cannot have `type: {step.type}`"
            keys = [key for key in ("type", "rules", "when", "for_each") if step.reading.has(*step.path, key)]
            place = step.reading.key(*step.path, keys[0]) if keys else step.name_location()
            step.report(
                "T155",
                message,
                place,
                f"make it a standard step; `{graph.steps[first].title}` can decide in its handler",
            )


def branches_are_joined_by_convergences(graph: DependencyGraph) -> None:
    """Check that a step below a failure branch depends on it alone, unless it is a convergence."""
    for name in graph.order:
        step = graph.steps[name]
        if name not in graph.failure_branches or step.handles is not None:
            continue
        for parent in graph.parents[name]:
            if parent not in graph.failure_branches:
                inside = next(other for other in graph.parents[name] if other in graph.failure_branches)
                message = f"`{step.title}` waits for `{parent}` and for `{inside}`, which exists only after a failure"
                hint = f"make it a `type: deferred_convergence`, or remove `{parent}`"
                step.report("T156", message, step.dependency_location(parent), hint)
                break
