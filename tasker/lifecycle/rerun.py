"""What of a task stays and what runs anew when it runs again from one of its steps."""

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
    """The names of the steps that run again, and of those that exist no more: what runs again decides about them anew.

    All others are done, and their results are reused.
    """

    again: frozenset[str]
    dropped: frozenset[str]


def rerun_from(
    plan: Plan, start: str, existing: Existing, decided: Mapping[str, Any], limits: ExpansionLimits = DEFAULT_LIMITS
) -> RerunScope:
    """What running again from the step `start` means for a task of these steps.

    `start` runs again, with everything below it and everything that is not done. `decided` are the results of the
    decision and batchable steps that are done, None for one that a person resolved: a step that only those of them
    create that run again is dropped.
    """
    template_step = next(step.template_step for step in existing if step.name == start)
    below = frozenset(plan.below.of(template_step))
    again = {step.name for step in existing if step.open or step.name == start or step.template_step in below}
    kept = _derived(plan, {name: result for name, result in decided.items() if name not in again}, limits)
    dropped = frozenset(again - kept)
    return RerunScope(frozenset(again - dropped), dropped)


def _derived(plan: Plan, decided: Mapping[str, Any], limits: ExpansionLimits) -> frozenset[str]:
    """The steps of a task in which these steps have decided, and no other has: made by deciding once more, in order."""
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
