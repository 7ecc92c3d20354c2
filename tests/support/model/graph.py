"""The naive model of a task's graph: plain names and dictionaries, grown by the outcome of one step at a time.

It says the same as the planner of the engine and shares nothing with it: ancestors are walked, ways are written out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tasker.template.plan import Plan
from tasker.template.step_types import StepType

DECISION_LIMIT = 3
"""How many decisions may stand one above the other; the engine's default."""
CHOOSERS = (StepType.DECISION, StepType.BATCHABLE)


@dataclass(frozen=True)
class Shape:
    """What the model reads of a template: the type and the dependencies of each step, in topological order."""

    types: Mapping[str, StepType]
    needs: Mapping[str, tuple[str, ...]]

    @classmethod
    def of(cls, plan: Plan) -> Shape:
        return cls({s.name: s.type for s in plan.steps}, {s.name: s.depends_on for s in plan.steps})

    def above(self, name: str) -> set[str]:
        """Every step that this one waits for, directly or not."""
        return set(self.needs[name]).union(*(self.above(parent) for parent in self.needs[name]))

    def static(self, name: str) -> bool:
        """True when no decision or batchable step stands above it."""
        return not any(self.types[up] in CHOOSERS for up in self.above(name))

    def below(self, name: str) -> list[str]:
        return [other for other in self.types if name in self.above(other)]


@dataclass(frozen=True)
class Present:
    """The steps of a task: the template step of each, and which template steps have still to decide."""

    made_from: dict[str, str]
    undecided: set[str]

    def of(self, names: tuple[str, ...] | list[str]) -> list[str]:
        """The steps that exist for these template steps."""
        return [step for name in names for step, template in self.made_from.items() if template == name]

    def has(self, name: str) -> bool:
        return name in self.made_from.values()


def first_steps(shape: Shape) -> dict[str, set[str]]:
    """The steps that a new task has, with their parents."""
    return {name: set(shape.needs[name]) for name in shape.types if shape.static(name)}


def too_deep(shape: Shape, present: Present, decision: str) -> bool:
    """True when more decisions than allowed stand one above the other down to this one, counting only existing ones."""

    def depth(name: str) -> int:
        if shape.types[name] is not StepType.DECISION or not present.has(name):
            return max((depth(parent) for parent in shape.needs[name]), default=0)
        return 1 + max((depth(parent) for parent in shape.needs[name]), default=0)

    return depth(decision) > DECISION_LIMIT


def grow(
    shape: Shape, present: Present, chooser: str, result: Mapping[str, Any] | None
) -> dict[str, tuple[str, set[str]]]:
    """The steps that come to life when `chooser` ends with this result: name -> (template step, parents).

    Without a result a person resolved it: nothing is chosen. `present` must not list the chooser as undecided; it is
    changed.
    """
    outcome = dict(result or {})
    chosen = set(outcome.get("decision_point_outcome", {}).get("step_names", ()))
    new: dict[str, tuple[str, set[str]]] = {}
    for name in shape.below(chooser):
        if present.has(name):
            continue
        for step, parents in _instances(shape, present, chooser, name, chosen, outcome).items():
            new[step] = (name, parents)
            present.made_from[step] = name
            if shape.types[name] in CHOOSERS:
                present.undecided.add(name)
    return new


def _instances(
    shape: Shape, present: Present, chooser: str, name: str, chosen: set[str], outcome: Mapping[str, Any]
) -> dict[str, set[str]]:
    kind, needs = shape.types[name], shape.needs[name]
    if kind is StepType.BATCH_WORKER:
        if shape.types[chooser] is not StepType.BATCHABLE or chooser not in needs:
            return {}
        count = max(1, outcome.get("batch_processing_outcome", {}).get("worker_count", 0))
        return {f"{name}_{n:03}": {chooser, *present.of(needs)} for n in range(1, count + 1)}
    if name in chosen and kind is not StepType.DEFERRED:
        return {name: {chooser, *present.of(needs)}}
    if present.undecided & shape.above(name):
        return {}
    if kind is StepType.DEFERRED:
        joined = set(present.of(needs))
        return {name: joined or {chooser}} if joined or not _untaken(shape, present, name) else {}
    branch = any(shape.types[parent] is StepType.DECISION for parent in needs)
    return {} if branch or not all(map(present.has, needs)) else {name: set(present.of(needs))}


def _untaken(shape: Shape, present: Present, name: str) -> bool:
    """All ways to it pass one missing step, at or after which something would have been decided."""
    shared = set.intersection(*(set(way) for way in _missing_ways(shape, present, name)))
    missing = {step for step in shape.above(name) if not present.has(step)}
    return any(
        shape.types[later] in CHOOSERS
        for step in shared
        for later in missing
        if later == step or step in shape.above(later)
    )


def _missing_ways(shape: Shape, present: Present, name: str) -> Iterator[list[str]]:
    """The missing steps on each way from the nearest step that exists down to `name`."""
    for parent in shape.needs[name]:
        if present.has(parent):
            yield []
        else:
            yield from ([*way, parent] for way in _missing_ways(shape, present, parent))
