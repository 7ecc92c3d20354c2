"""Rules of the steps of `finally`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.template.diagnostics import did_you_mean, listed
from tasker.template.documents import StepDraft
from tasker.template.failure_words import CONTINUE, FAIL_TASK
from tasker.template.graph import DependencyGraph
from tasker.template.step_types import DEFAULT


def exist(graph: DependencyGraph, document: Mapping[str, Any]) -> None:
    """Check that `finally` names steps, each once, and not all of them."""
    reading = next((step.reading for step in graph.steps.values()), None)
    named = document.get("finally", ())
    if reading is None or not graph.complete:
        return
    for number, name in enumerate(named):
        if not isinstance(name, str):  # reported when it was read
            continue
        place = reading.value("finally", number)
        if name not in graph.steps:
            hint = did_you_mean(name, graph.steps) or f"steps: {listed(graph.steps)}"
            reading.report.add("T210", f"there is no step `{name}`", place, hint)
        elif name in named[:number]:
            reading.report.add("T210", f"`finally` names `{name}` twice", place, "remove one of them")
    if named and all(step.at_rest for step in graph.steps.values()):
        message = "all steps are steps of `finally`, so that none runs before them"
        reading.report.add("T213", message, reading.key("finally"), "name only the steps that run last")


def stand_alone(graph: DependencyGraph) -> None:
    """Check that a step of `finally` has no dependencies, and that no step depends on it."""
    for name, step in graph.steps.items():
        for parent in step.depends_on if step.made_for is None else ():
            if step.at_rest and parent in graph.steps and graph.steps[parent].made_for is None:
                message = f"`{name}` runs when all other steps have come to rest, and cannot wait for `{parent}`"
                step.report("T211", message, step.dependency_location(parent), f"remove `{parent}`")
            elif not step.at_rest and parent in graph.steps and graph.steps[parent].at_rest:
                message = f"`{name}` waits for `{parent}`, which runs when all other steps have come to rest"
                hint = f"remove `{parent}`, or name `{name}` in `finally`, too"
                step.report("T211", message, step.dependency_location(parent), hint)


def are_standard_steps(graph: DependencyGraph) -> None:
    """Check that a step of `finally` is a standard step whose failure fails the task or is ignored."""
    for name, step in graph.steps.items():
        if step.at_rest and step.made_for is None:
            _is_standard(step)
        first, _, number = name.rpartition(".")
        if number.isdigit() and first in graph.steps and graph.steps[first].at_rest:
            message = f"`{name}` is the name of a later run of `{first}`, a step of `finally`"
            step.report("T212", message, step.name_location(), "choose another name")


def _is_standard(step: StepDraft) -> None:
    values = step.values
    if keys := [key for key in ("when", "for_each") if key in values]:
        place, hint = step.reading.key(*step.path, keys[0]), "let its handler decide: it reads `context.outcome`"
        step.report("T212", f"a step of `finally` cannot have `{keys[0]}`", place, hint)
    elif step.type not in (None, DEFAULT):
        hint = "make it a standard step"
        step.report("T212", f"a step of `finally` cannot be a {step.type} step", step.location("type"), hint)
    elif values.get("on_failure", FAIL_TASK) not in (FAIL_TASK, CONTINUE):
        place = step.reading.key(*step.path, "on_failure")
        message = "nothing depends on a step of `finally`: its failure fails the task, or is ignored"
        step.report("T212", message, place, "write `optional: true`")
