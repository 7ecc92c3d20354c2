"""Rules of events, external systems, breakers and execution modes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tasker.template.build import step_breaker
from tasker.template.diagnostics import Position, did_you_mean, listed
from tasker.template.documents import StepDraft
from tasker.template.graph import DependencyGraph


def settings_agree(graph: DependencyGraph) -> None:
    """Check that steps with the same circuit breaker give it the same settings."""
    first: dict[str, StepDraft] = {}
    for step in graph.steps.values():
        if (name := step.values.get("circuit_breaker", {}).get("name")) is None:
            continue
        other = first.setdefault(name, step)
        if step_breaker(step.values["circuit_breaker"]) != step_breaker(other.values["circuit_breaker"]):
            line = other.location("circuit_breaker", "name").line
            message = f"the circuit breaker `{name}` has other settings in the step `{other.name}` (line {line})"
            hint = "give both the same settings, or one of them another name"
            step.report("T036", message, step.location("circuit_breaker", "name"), hint)


FAILURES = frozenset(("retryable_failure", "permanent_failure"))
OUTCOMES = {"failure": FAILURES, "always": FAILURES | {"success"}}
"""Outcomes matched by conditions that match more than the outcome of their own name."""


def names_differ(graph: DependencyGraph) -> None:
    """Check that one outcome of a step publishes an event only once."""
    for step in graph.steps.values():
        seen: list[tuple[str, frozenset[str], int]] = []
        for event, location in _published(step):
            on = _outcomes(event)
            line = next((line for name, before, line in seen if name == event["name"] and before & on), None)
            if line is not None:
                hint = f"the first is in line {line}; conditions may share a name that exclude each other"
                step.report("T039", f"the step publishes `{event['name']}` twice for one outcome", location, hint)
            seen.append((event["name"], on, location.line))


def every_event_is_published(graph: DependencyGraph, document: Mapping[str, Any]) -> None:
    """Check that an event is listed once, and is not a misspelling of an event that a step publishes.

    A listed event that no step declares is allowed: a handler may publish it itself with the listed schema.
    """
    published = {event["name"] for step in graph.steps.values() for event, _ in _published(step)}
    first: set[str] = set()
    for number, event in enumerate(document.get("domain_events", ())):
        name = event.get("name") if isinstance(event, dict) else None
        reading = next(iter(graph.steps.values())).reading if graph.steps else None
        if not isinstance(name, str) or reading is None:
            continue
        location = reading.value("domain_events", number, "name")
        if name in first:
            reading.report.add("T039", f"the event `{name}` is listed twice", location, "remove one of them")
        elif name not in published and (near := did_you_mean(name, published)):
            hint = f"{near} Where a handler publishes it itself, all is well"
            reading.report.add("T076", f"no step publishes `{name}`", location, hint)
        first.add(name)


def _published(step: StepDraft) -> Iterator[tuple[Mapping[str, Any], Position]]:
    for number, event in enumerate(step.values.get("publishes_events", ())):
        if isinstance(event, dict) and isinstance(event.get("name"), str):
            yield event, step.reading.value(*step.path, "publishes_events", number, "name")


def _outcomes(event: Mapping[str, Any]) -> frozenset[str]:
    condition = event.get("condition", "success")
    return OUTCOMES.get(condition, frozenset((condition,)))


def memory_belongs_to_processes(graph: DependencyGraph) -> None:
    """Check that only steps in a process set `memory_mb`: threads and the event loop share their worker's memory."""
    for step in graph.steps.values():
        execution = step.values.get("execution", {})
        if "memory_mb" in execution and execution.get("mode") != "process":
            message = "`memory_mb` limits a process, and this step has none of its own"
            step.report("T038", message, step.location("execution", "memory_mb"), "add `mode: process`")


def declared(graph: DependencyGraph, document: Mapping[str, Any]) -> None:
    """Check that a step's `system_dependency` is one of the declared systems."""
    systems = document.get("system_dependencies", {})
    names = [systems.get("primary", "default"), *(s for s in systems.get("secondary", ()) if isinstance(s, str))]
    for step in graph.steps.values():
        name = step.values.get("system_dependency")
        if name is not None and name not in names:
            hint = did_you_mean(name, names) or f"declare it under `system_dependencies`; declared: {listed(names)}"
            step.report("T033", f"the system `{name}` is not declared", step.location("system_dependency"), hint)
