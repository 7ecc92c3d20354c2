"""Decision whether a convergence is created when none of the steps that it joins exist."""

from __future__ import annotations

from tasker.contracts.plan import StepPlan
from tasker.lifecycle.growth import GraphDelta


def in_untaken_branch(growth: GraphDelta, step: StepPlan) -> bool:
    """Return whether the step joins only steps that an untaken branch would have created.

    A convergence is created even when nothing that it joins exists. That is meant for the convergence of a decision
    that was made. An aggregator of batches whose batchable step was never chosen has nothing to join and no reason to
    run. It is told by the shape of the template: every way from the steps that exist to it leads through one step
    that does not exist and is, or leads on to, a decision or batchable step.
    """
    missing = [name for name in growth.plan.above.of(step.name) if not growth.exists(name)]
    return any(_leads_to_choice(growth, name, step) and not _reachable(growth, step, name) for name in missing)


def _leads_to_choice(growth: GraphDelta, name: str, step: StepPlan) -> bool:
    """Return whether `name`, or a step between it and `step`, would have created steps."""
    by_name = growth.plan.by_name
    between = {name, *growth.plan.below.of(name)}.intersection(growth.plan.above.of(step.name))
    return any(by_name[other].type.expands and not growth.exists(other) for other in between)


def _reachable(growth: GraphDelta, step: StepPlan, without: str) -> bool:
    """Return whether some path from an existing step down to `step` avoids the step `without`."""
    todo = [name for name in step.depends_on if name != without]
    seen = set(todo)
    for name in todo:
        if growth.exists(name):
            return True
        above = [up for up in growth.plan.by_name[name].depends_on if up != without and up not in seen]
        seen.update(above)
        todo += above
    return False
