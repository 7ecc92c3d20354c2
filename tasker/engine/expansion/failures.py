"""Consequences of the failure of a step for the other steps of its task.

The planner is a pure function of the compiled plan and the existing steps. It is asked when a step fails for good: its
retries have ended.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tasker.dataclasses import dataclass
from tasker.engine.expansion.batches import ParsedBatches
from tasker.engine.expansion.graph import Existing, ExistingStep, GraphDelta, NewStep
from tasker.engine.expansion.planner import close, template_step
from tasker.template.failure_words import SKIPPED, WORDS
from tasker.template.plan import Plan, StepPlan

Parents = Mapping[str, Sequence[str]]
"""Names of the steps that each existing step waits for or has waited for."""


@dataclass(frozen=True, slots=True)
class FailurePlan:
    """Consequences of a failure after which the task goes on."""

    settled: str | None = None
    """Letter of the step's word; None: the failure ends the task."""
    skipped: tuple[str, ...] = ()
    """Pending steps that will not run."""
    steps: tuple[NewStep, ...] = ()
    """Steps to create, in topological order."""


def plan_failure(plan: Plan, failed: str, existing: Existing, parents: Parents) -> FailurePlan:
    """Return what follows from the failure of the step `failed`, by its word."""
    step = template_step(plan, failed, existing)
    word = WORDS[step.on_failure]
    if word.letter is None:
        return FailurePlan()
    dead = {other.name for other in existing if other.dead}
    skipped: list[str] = []
    if not word.dependents_run:
        dead.add(failed)
        skipped = _skipped(plan, step, existing, parents, dead)
    gone = {failed, *skipped}
    after = [
        other
        if other.name not in gone
        else replace(other, open=False, settled=word.letter if other.name == failed else SKIPPED, pending=False)
        for other in existing
    ]
    decided = any(plan.by_name[other.template_step].type.expands for other in existing if other.name in gone)
    if not decided and step.run_on_failure is None:
        return FailurePlan(word.letter, tuple(skipped))
    growth = GraphDelta(plan, step, after, failed)
    chosen = frozenset() if step.run_on_failure is None else frozenset({step.run_on_failure})
    close(growth, chosen, ParsedBatches())
    joining = {other.name for other in existing if other.pending and other.name not in gone}
    return FailurePlan(word.letter, tuple(skipped), tuple(_joined(plan, new, existing, joining) for new in growth.new))


def _skipped(plan: Plan, step: StepPlan, existing: Existing, parents: Parents, dead: set[str]) -> list[str]:
    """Return the pending steps that will not run, and add them to `dead`.

    A plain step needs all of its parents; a convergence runs if one of them may still end well.
    """
    below = plan.below.reached([step.name])
    rescued = _branch(plan, step)
    skipped = []
    for other in sorted(existing, key=lambda each: plan.by_name[each.template_step].ordinal):
        if other.template_step not in below or not other.pending:
            continue
        above = parents.get(other.name, ())
        template = plan.by_name[other.template_step]
        if template.type.converges:
            lost = dead.issuperset(above) and rescued.isdisjoint(template.depends_on)
        else:
            lost = not dead.isdisjoint(above)
        if lost:
            dead.add(other.name)
            skipped.append(other.name)
    return skipped


def _branch(plan: Plan, step: StepPlan) -> set[str]:
    """Return the template steps that exist only because this one failed."""
    branch: set[str] = set()
    for other in plan.steps if step.run_on_failure is not None else ():
        if other.name == step.run_on_failure or (not other.type.converges and not branch.isdisjoint(other.depends_on)):
            branch.add(other.name)
    return branch


def _joined(plan: Plan, new: NewStep, existing: Sequence[ExistingStep], joining: set[str]) -> NewStep:
    """Return the new step with the existing convergences that list it."""
    names = [
        other.name
        for other in existing
        if other.name in joining and new.template_step in plan.by_name[other.template_step].depends_on
    ]
    return replace(new, joins=tuple(names)) if names else new
