"""Compensations of a task: the steps that undo its complete steps, in the reverse order of its graph.

The same is decided by `tasker.compensations_of` in the database; a test compares both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from tasker.engine.expansion.graph import NewStep
from tasker.template.plan import Plan

MOST_EDGES: Final = 10_000
"""Edges between compensations above and below one place in the graph; where there were more, one of those below is a
gate."""


def plan_compensation(
    plan: Plan, complete: Iterable[str], parents: Mapping[str, Sequence[str]], most: int = MOST_EDGES
) -> list[NewStep]:
    """Return the compensations of the complete steps, in topological order.

    `parents` are those of all existing steps. Each compensation waits for those of the nearest steps below its own,
    also through steps without a compensation. Where these are more than `most` edges, it waits for the first of them
    in the graph, which waits for the others. A step with a compensation has one instance, of its own name.
    """
    undo = {step.undoes: step for step in plan.steps if step.undoes is not None}
    undone = {name for name in complete if name in undo}
    below: dict[str, list[str]] = {}
    for name, above in parents.items():
        for parent in above:
            below.setdefault(parent, []).append(name)
    waiting = _waiting(undone, below, most, plan)
    ordered = sorted(undone, key=lambda name: plan.by_name[name].ordinal, reverse=True)
    return [
        NewStep(undo[name].name, undo[name].name, (name, *(undo[other].name for other in waiting[name])))
        for name in ordered
    ]


def _waiting(undone: set[str], below: Mapping[str, Sequence[str]], most: int, plan: Plan) -> dict[str, set[str]]:
    """Return for each step those whose compensations its own waits for."""
    alike: dict[frozenset[str], list[str]] = {}
    for name in undone:
        alike.setdefault(frozenset(below.get(name, ())), []).append(name)
    crowds: dict[frozenset[str], list[str]] = {}
    for children, names in alike.items():
        crowds.setdefault(_nearest(children, undone, below), []).extend(names)
    waiting: dict[str, set[str]] = {name: set() for name in undone}
    for nearest, names in crowds.items():
        gates = nearest
        if len(names) > 1 and len(names) * len(nearest) > most:
            gate = min(nearest, key=lambda name: plan.by_name[name].ordinal)
            waiting[gate] |= nearest - {gate}
            gates = frozenset({gate})
        for name in names:
            waiting[name] |= gates
    return waiting


def _nearest(children: Iterable[str], undone: set[str], below: Mapping[str, Sequence[str]]) -> frozenset[str]:
    """Return the first steps of `undone` on the ways down, beginning with these steps."""
    left, seen, nearest = list(children), set[str](), set[str]()
    while left:
        name = left.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in undone:
            nearest.add(name)
        else:
            left += below.get(name, ())
    return frozenset(nearest)
