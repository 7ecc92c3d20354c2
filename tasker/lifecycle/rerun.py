"""Scope of a rerun: the steps that are reused, run again or dropped when a task restarts from one of its steps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.expansion.graph import Existing, ExistingStep
from tasker.contracts.plan import Plan
from tasker.lifecycle.choices import DEFAULT_LIMITS, ExpansionLimits
from tasker.lifecycle.expansion import expand, expand_resolved


@dataclass(frozen=True, slots=True)
class RerunScope:
    """Names of the steps that run again, and of those that are dropped because their creators decide again.

    All other steps are done, and their results are reused.
    """

    again: frozenset[str]
    dropped: frozenset[str]


def rerun_from(
    plan: Plan, start: str, existing: Existing, decided: Mapping[str, Any], limits: ExpansionLimits = DEFAULT_LIMITS
) -> RerunScope:
    """Return the scope of a rerun from the step `start`.

    `start` runs again, with all steps below it and all steps that are not done. `decided` are the results of the done
    decision and batchable steps, None for one that an operator resolved. A step is dropped if only steps that run again
    create it.
    """
    template_step = next(step.template_step for step in existing if step.name == start)
    below = frozenset(plan.below.of(template_step))
    again = {step.name for step in existing if step.open or step.name == start or step.template_step in below}
    kept = _derived(plan, {name: result for name, result in decided.items() if name not in again}, limits)
    dropped = frozenset(again - kept)
    return RerunScope(frozenset(again - dropped), dropped)


def _derived(plan: Plan, decided: Mapping[str, Any], limits: ExpansionLimits) -> frozenset[str]:
    """Return the steps of a task in which exactly these steps have decided, by repeating the expansions in order."""
    graph = {step.name: ExistingStep(step.name, step.name, True) for step in plan.steps if step.static}
    for name in (step.name for step in plan.steps if step.name in decided):
        existing, result = tuple(graph.values()), decided[name]
        created = (
            expand_resolved(plan, name, existing, limits)
            if result is None
            else expand(plan, name, result, existing, limits)
        )
        graph[name] = ExistingStep(name, name, False)
        graph.update({step.name: ExistingStep(step.name, step.template_step, True) for step in created.steps})
    return frozenset(graph)
