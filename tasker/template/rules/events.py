"""Rules of the events that steps publish and that the template lists."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from tasker.template.diagnostics import Position, did_you_mean
from tasker.template.drafts import StepDraft
from tasker.template.graph import DependencyGraph

FAILURES = frozenset(("retryable_failure", "permanent_failure"))
OUTCOMES = {"failure": FAILURES, "always": FAILURES | {"success"}}
"""Outcomes matched by conditions that match more than the outcome of their own name."""


def names_differ(graph: DependencyGraph) -> None:
    """Check that one outcome of a step publishes an event only once."""
    for step in graph.steps.values():
        seen: list[tuple[str, frozenset[str], int]] = []
        for event, place in _published(step):
            on = _outcomes(event)
            line = next((line for name, before, line in seen if name == event["name"] and before & on), None)
            if line is not None:
                hint = f"the first is in line {line}; conditions may share a name that exclude each other"
                step.report("T039", f"the step publishes `{event['name']}` twice for one outcome", place, hint)
            seen.append((event["name"], on, place.line))


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
        place = reading.value("domain_events", number, "name")
        if name in first:
            reading.report.add("T039", f"the event `{name}` is listed twice", place, "remove one of them")
        elif name not in published and (near := did_you_mean(name, published)):
            hint = f"{near} Where a handler publishes it itself, all is well"
            reading.report.add("T076", f"no step publishes `{name}`", place, hint)
        first.add(name)


def _published(step: StepDraft) -> Iterator[tuple[Mapping[str, Any], Position]]:
    for number, event in enumerate(step.values.get("publishes_events", ())):
        if isinstance(event, dict) and isinstance(event.get("name"), str):
            yield event, step.reading.value(*step.path, "publishes_events", number, "name")


def _outcomes(event: Mapping[str, Any]) -> frozenset[str]:
    condition = event.get("condition", "success")
    return OUTCOMES.get(condition, frozenset((condition,)))
