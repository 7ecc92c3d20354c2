"""Steps that the completion of a decision or batchable step adds.

The planner is a pure function of the compiled plan, the completed step, its result and the existing steps. It never
adds a parent to an existing step, so it cannot create a cycle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tasker.engine.expansion.batches import (
    NO_BATCHES,
    PLACEHOLDER_CURSOR,
    ParsedBatches,
    instance_name,
    parse_batches,
    worker_inputs,
)
from tasker.engine.expansion.choices import (
    DEFAULT_LIMITS,
    NO_BRANCHES,
    ExpansionLimits,
    ParsedDecision,
    check_batches,
    check_depth,
    check_names,
    parse_decision,
    worker_pattern,
)
from tasker.engine.expansion.graph import Existing, Expansion, GraphDelta
from tasker.engine.expansion.outcomes import OutcomeError, OutcomeProblem
from tasker.handlers.outcome_forms import BATCH_KEY, DECISION_KEY
from tasker.template.plan import Plan, StepPlan
from tasker.template.step_types import Creates, StepType


def in_untaken_branch(growth: GraphDelta, step: StepPlan) -> bool:
    """Return whether the step joins only steps that an untaken branch would have created.

    A convergence is created even when nothing that it joins exists. That is meant for the convergence of a decision
    that was made. An aggregator of batches whose batchable step was never chosen has nothing to join and no reason to
    run. The shape of the template decides it: every way from the steps that exist to it leads through one step
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


def expand(
    plan: Plan, parent: str, result: Any, existing: Existing, limits: ExpansionLimits = DEFAULT_LIMITS
) -> Expansion:
    """Return the steps to create when `parent` completes with `result`, in topological order.

    `existing` are all steps of the task, including `parent`. A step is open until it is complete or resolved, so a
    decision in `error` is open: an operator may still repair it. Existing steps are never planned again. Raises
    `OutcomeError` if the outcome is invalid, which is a permanent failure of `parent`.
    """
    step = template_step(plan, parent, existing)
    if step.type.creates is Creates.BRANCHES:
        return _decide(plan, step, parse_decision(result), existing, limits)
    if step.type.creates is Creates.BATCHES:
        return _cut(plan, step, parse_batches(result), existing, limits)
    return Expansion(warnings=_stray_outcomes(step, result))


def expand_resolved(plan: Plan, parent: str, existing: Existing, limits: ExpansionLimits = DEFAULT_LIMITS) -> Expansion:
    """Return the steps to create for a step that an operator resolved without a result: no branches, no batches."""
    step = template_step(plan, parent, existing)
    if step.type.creates is Creates.BRANCHES:
        return _decide(plan, step, NO_BRANCHES, existing, limits)
    if step.type.creates is Creates.BATCHES:
        return _cut(plan, step, NO_BATCHES, existing, limits)
    return Expansion()


def template_step(plan: Plan, parent: str, existing: Existing) -> StepPlan:
    name = next((step.template_step for step in existing if step.name == parent), parent)
    return plan.by_name[name]


def _stray_outcomes(step: StepPlan, result: Any) -> tuple[str, ...]:
    """Return a warning for each outcome in the result of a step that cannot create steps; it is ignored."""
    if not isinstance(result, Mapping):
        return ()
    return tuple(
        f"the result of '{step.name}' holds '{key}', which is ignored: its type is {step.type}, not {_creating(what)}"
        for key, what in _KEYS.items()
        if key in result
    )


_KEYS = {DECISION_KEY: Creates.BRANCHES, BATCH_KEY: Creates.BATCHES}
"""Keys of outcomes in results, with what they create."""


def _creating(what: Creates) -> str:
    return " or ".join(type_ for type_ in StepType if type_.creates is what)


def _decide(
    plan: Plan, step: StepPlan, decision: ParsedDecision, existing: Existing, limits: ExpansionLimits
) -> Expansion:
    growth = GraphDelta(plan, step, existing)
    if not limits.decisions.enabled and not step.rules:  # the setting is about handlers that decide
        close(growth, frozenset(), ParsedBatches())
        return Expansion(tuple(growth.new), (f"decisions are disabled: '{step.name}' counts as no_branches",))
    warnings = [
        *check_depth(growth, limits),
        *check_names(growth, decision, limits),
    ]
    close(growth, frozenset(_entry(plan, step, name) for name in decision.step_names), ParsedBatches())
    return Expansion(tuple(growth.new), (*warnings, *_orphans(growth)))


def _entry(plan: Plan, decision: StepPlan, name: str) -> str:
    """Return the step to create for a named one: the generated step of its condition or list, if it has one."""
    entry = plan.entries.get(name, name)
    return name if entry == decision.name else entry


def _cut(plan: Plan, step: StepPlan, outcome: ParsedBatches, existing: Existing, limits: ExpansionLimits) -> Expansion:
    if not limits.batches.enabled:
        raise OutcomeError(
            OutcomeProblem.DISABLED,
            f"'{step.name}' is {step.type}, and batch processing is disabled",
            hint="set orchestration.batch_processing.enabled to true",
        )
    check_batches(step, outcome, limits)
    growth = GraphDelta(plan, step, existing)
    pattern, warnings = worker_pattern(growth, outcome)
    if pattern and growth.exists(pattern):
        return Expansion()
    close(growth, frozenset(), ParsedBatches(pattern, outcome.cursors, outcome.total_items))
    return Expansion(tuple(growth.new), (*outcome.warnings, *warnings, *_orphans(growth)))


def close(growth: GraphDelta, chosen: frozenset[str], cut: ParsedBatches) -> None:
    """Create the steps below the parent that can exist now, in one pass in topological order."""
    below = growth.plan.below.reached([growth.parent.name])
    for step in growth.plan.steps:
        if step.name not in below or growth.exists(step.name) or step.is_late:
            continue
        if step.type.is_pattern:
            if step.name == cut.pattern and not growth.has_dead(step.depends_on):
                _add_workers(growth, step, cut)
        elif step.type.converges:
            _add_convergence(growth, step)
        elif step.name in chosen:
            if step.handles is not None or not growth.has_dead(step.depends_on):
                growth.add(step, (growth.name, *growth.instances_of(step.depends_on)))
        elif _follows(growth, step):
            growth.add(step, growth.instances_of(step.depends_on))


def _add_workers(growth: GraphDelta, pattern: StepPlan, cut: ParsedBatches) -> None:
    """Add one worker per cursor, or a placeholder if there are none, so that the graph keeps its shape."""
    parents = (growth.parent.name, *growth.instances_of(pattern.depends_on))
    for index, cursor in enumerate(cut.cursors or (PLACEHOLDER_CURSOR,)):
        inputs = worker_inputs(cursor, pattern.batch, no_op=not cut.cursors)
        growth.add(pattern, parents, name=instance_name(pattern.name, index), inputs=inputs)


def _add_convergence(growth: GraphDelta, step: StepPlan) -> None:
    """Add a convergence that waits for its existing dependencies, unless a step above it is undecided."""
    if growth.waits_for_decision(step):
        return
    parents = growth.instances_of(step.depends_on)
    if growth.are_dead(parents or (growth.name,)):
        return
    if parents or not (in_untaken_branch(growth, step) or _joins_skipped(growth, step)):
        growth.add(step, parents or (growth.name,))


def _joins_skipped(growth: GraphDelta, step: StepPlan) -> bool:
    """Return whether a step that it joins was not created because of a failure above, whichever came first."""
    if not growth.has_failures:
        return False
    above, skipped = growth.plan.above.of(step.name), set[str]()
    for other in growth.plan.steps:
        if other.name not in above or growth.exists(other.name):
            continue
        dead = [name for name in other.depends_on if name in skipped or growth.has_dead((name,))]
        runs = other.type.converges and any(growth.exists(name) for name in other.depends_on if name not in dead)
        if dead and not runs:
            skipped.add(other.name)
    return not skipped.isdisjoint(step.depends_on)


def _follows(growth: GraphDelta, step: StepPlan) -> bool:
    """Return whether a step is created without being chosen, since all its dependencies exist.

    A step directly below a decision is a branch, which is created only when a decision names it; a step that handles a
    failure, only when that step fails.
    """
    if step.handles is not None or growth.has_dead(step.depends_on):
        return False
    by_name = growth.plan.by_name
    is_branch = any(by_name[name].type.creates is Creates.BRANCHES for name in step.depends_on)
    return not is_branch and not growth.waits_for_decision(step) and all(map(growth.exists, step.depends_on))


def _orphans(growth: GraphDelta) -> list[str]:
    """Return warnings for convergences that were created although none of the steps that they join exist."""
    by_name, parent = growth.plan.by_name, growth.parent.name
    return [
        f"none of the dependencies of '{step.name}' exists; it runs after '{parent}'"
        for step in growth.new
        if by_name[step.template_step].type.converges
        and step.parents == (parent,)
        and parent not in by_name[step.template_step].depends_on
    ]
