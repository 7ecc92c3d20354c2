"""Compensations of a task: the steps that undo its complete steps, in the reverse order of its graph.

The same is decided by `tasker.compensations_of` in the database; a test compares both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tasker.engine.expansion.graph import NewStep
from tasker.template.plan import Plan


def plan_compensation(plan: Plan, complete: Iterable[str], parents: Mapping[str, Sequence[str]]) -> list[NewStep]:
    """Return the compensations of the complete steps, in topological order.

    `parents` are those of all existing steps. Each compensation waits for those of the nearest steps below its own,
    also through steps without a compensation. A step with a compensation has one instance, of its own name.
    """
    undo = {step.undoes: step for step in plan.steps if step.undoes is not None}
    undone = {name for name in complete if name in undo}
    below: dict[str, list[str]] = {}
    for name, above in parents.items():
        for parent in above:
            below.setdefault(parent, []).append(name)
    ordered = sorted(undone, key=lambda name: plan.by_name[name].ordinal, reverse=True)
    return [
        NewStep(
            undo[name].name, undo[name].name, (name, *(undo[other].name for other in _nearest(name, undone, below)))
        )
        for name in ordered
    ]


def _nearest(start: str, undone: set[str], below: Mapping[str, Sequence[str]]) -> list[str]:
    """Return the first steps of `undone` on the ways down from a step."""
    waiting, seen, nearest = list(below.get(start, ())), set[str](), []
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        if name in undone:
            nearest.append(name)
        else:
            waiting += below.get(name, ())
    return nearest
