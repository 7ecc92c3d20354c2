"""Rules of branches, convergences and batches."""

from __future__ import annotations

import re

from tasker.template.diagnostics import did_you_mean, listed
from tasker.template.documents import StepDraft
from tasker.template.graph import DependencyGraph
from tasker.template.step_types import Creates, Origin

INSTANCE = re.compile(r"(.+)_\d{3,}", re.DOTALL)


def instance_names(graph: DependencyGraph) -> None:
    """Check that no step is named like an instance of a batch worker, `<name>_001`."""
    for name, step in graph.steps.items():
        instance = INSTANCE.fullmatch(name)
        if instance and instance[1] in graph.steps and graph.is_from(instance[1], Origin.BATCH):
            message = f"`{name}` is the name of an instance of the batch_worker `{instance[1]}`"
            step.report("T055", message, step.name_location(), "choose another name")


def worker_has_one_batchable(graph: DependencyGraph) -> None:
    """Check that a batch_worker depends on exactly one batchable step."""
    for name in (name for name in graph.steps if graph.is_from(name, Origin.BATCH)):
        batchables = [p for p in graph.parents[name] if graph.makes(p, Creates.BATCHES)]
        unsure = name in graph.tainted or any(p in graph.tainted for p in graph.parents[name])
        if len(batchables) != 1 and not unsure:
            step = graph.steps[name]
            actual = listed(batchables) if batchables else "none"
            message = f"the batch_worker `{name}` must depend on exactly one batchable step, found {actual}"
            step.report("T050", message, step.location("dependencies"), "list the step that makes its batches")


def batchable_has_worker(graph: DependencyGraph) -> None:
    """Check that a batchable step has a batch_worker; with several, an outcome without batches is ambiguous."""
    for name in (name for name in graph.steps if graph.makes(name, Creates.BATCHES)):
        workers = workers_of(name, graph)
        step = graph.steps[name]
        if not workers and graph.complete and not graph.tainted:
            message = f"the batchable step `{name}` has no batch_worker"
            hint = f"add a step of `type: batch_worker` that depends on `{name}`"
            step.report("T051", message, step.location("type"), hint)
        elif len(workers) > 1:
            message = f"the batchable step `{name}` has several batch_workers: {listed(workers)}"
            hint = "an outcome with batches names one of them; an outcome without is given to the first"
            step.report("T071", message, step.name_location(), hint)


def only_convergences_wait_for_workers(graph: DependencyGraph) -> None:
    """Check that only convergences wait for a batch_worker."""
    for name, parents in graph.parents.items():
        workers = [parent for parent in parents if graph.is_from(parent, Origin.BATCH)]
        if graph.steps[name].type is None or graph.is_from(name, Origin.CONVERGENCE):
            continue
        for worker in workers:
            step = graph.steps[name]
            hint = f"make `{name}` a `type: deferred_convergence`"
            if step.made_for is not None:
                hint = f"put a `type: deferred_convergence` between `{worker}` and `{step.title}`"
            message = f"`{step.title}` waits for the batch_worker `{worker}`, which is a pattern for many steps"
            step.report("T052", message, step.dependency_location(worker), hint)


def batch_config_belongs_to_batches(graph: DependencyGraph) -> None:
    """Check that `batch_config` is set on a batch_worker or on the batchable step above it."""
    for step in graph.steps.values():
        if "batch_config" in step.values and step.type is not None and not step.type.has_batches:
            message = f"`{step.name}` is a {step.type} step and has no batches"
            location = step.reading.key(*step.path, "batch_config")
            step.report("T056", message, location, "move it to the batch_worker")


def worker_template_fits(graph: DependencyGraph) -> None:
    """Check that `worker_template` names a batch_worker: one below the batchable step, or the batch_worker itself."""
    for step in graph.steps.values():
        named = step.values.get("batch_config", {}).get("worker_template")
        fitting = _fitting_templates(step.name, graph)
        if named is not None and fitting is not None and named not in fitting:
            message = f"`{named}` is no batch_worker of `{step.name}`"
            location = step.location("batch_config", "worker_template")
            step.report("T057", message, location, did_you_mean(named, fitting) or f"possible: {listed(fitting)}")


def workers_of(batchable: str, graph: DependencyGraph) -> list[str]:
    """Return the batch_workers that depend on the batchable step."""
    return [child for child in graph.children[batchable] if graph.is_from(child, Origin.BATCH)]


def _fitting_templates(name: str, graph: DependencyGraph) -> list[str] | None:
    if graph.makes(name, Creates.BATCHES):
        return workers_of(name, graph) or None
    return [name] if graph.is_from(name, Origin.BATCH) else None


def conditional_steps_are_reachable(graph: DependencyGraph) -> None:
    """Check that a plain step with a dependency that may not exist is created by a decision.

    Exempt are steps behind a convergence, since the convergence always exists, and batch workers; and steps below a
    branch of rules or a step with `when`, which are not there either when that is not.
    """
    deciding = _deciding(graph)
    for name in graph.order:
        step = graph.steps[name]
        exempt = step.type is None or not step.type.is_plain
        if exempt or decisions_above(name, graph) or _is_unsure(name, graph):
            continue
        by_handler = {
            p for p in graph.parents[name] if p in deciding and "rules" not in graph.steps[deciding[p]].values
        }
        for parent in [p for p in graph.parents[name] if p in by_handler and not _is_pattern(p, graph)][:1]:
            message = f"unreachable conditional step: `{name}` needs `{parent}`, which may not exist"
            hint = (
                f"add `{deciding[parent]}` to its dependencies, so that this decision can create it, "
                "or make it a `type: deferred_convergence`"
            )
            step.report("T054", message, step.dependency_location(parent), hint)


def branches_of_rules_are_certain(graph: DependencyGraph) -> None:
    """Check that a branch of rules depends on nothing else that may not exist: rules create it whatever else exists."""
    deciding = _deciding(graph)
    for name in graph.order:
        step = graph.steps[name]
        rules = [parent for parent in decisions_above(name, graph) if graph.steps[parent].made_for is None]
        rules = [parent for parent in rules if "rules" in graph.steps[parent].values]
        if not rules or not graph.is_plain(name) or _is_unsure(name, graph):
            continue
        others = [parent for parent in graph.parents[name] if parent != rules[0]]
        for parent in [p for p in others if p in deciding or graph.makes(p, Creates.BRANCHES)][:1]:
            message = f"`{step.title}` is a branch of `{rules[0]}` and needs `{parent}`, which may not exist"
            hint = f"remove one of the two; a `when` can read `steps.{rules[0]}.rule`, the number of the rule"
            step.report("T054", message, step.dependency_location(parent), hint)


def decisions_have_branches(graph: DependencyGraph) -> None:
    """Check that a decision can create at least one step."""
    for name, step in graph.steps.items():
        decides = graph.makes(name, Creates.BRANCHES)
        if decides and not branches_of(name, graph) and graph.complete and not graph.tainted:
            message = f"the decision `{name}` has nothing to decide"
            step.report(
                "T073", message, step.location("type"), f"a branch is a step with `{name}` among its dependencies"
            )


def convergences_are_declared(graph: DependencyGraph) -> None:
    """Warn about a plain step that waits for a decision and several branches: a convergence was probably meant."""
    for name, step in graph.steps.items():
        for decision in decisions_above(name, graph) if graph.is_plain(name) and not graph.expands(name) else []:
            siblings = [p for p in graph.parents[name] if decision in graph.parents[p] and is_branch(p, graph)]
            if len(siblings) > 1:
                message = f"`{name}` is a branch of `{decision}` that waits for other branches: {listed(siblings)}"
                hint = "if it brings the branches together, make it a `type: deferred_convergence`"
                step.report("T074", message, step.name_location(), hint)


def decisions_above(name: str, graph: DependencyGraph) -> list[str]:
    """Return the decisions that the step depends on directly."""
    return [parent for parent in graph.parents[name] if graph.makes(parent, Creates.BRANCHES)]


def branches_of(decision: str, graph: DependencyGraph) -> list[str]:
    """Return the steps that the decision can create."""
    return [child for child in graph.children[decision] if is_branch(child, graph)]


def is_branch(name: str, graph: DependencyGraph) -> bool:
    """Return whether a decision that the step depends on can create the step."""
    return graph.is_plain(name)


def _deciding(graph: DependencyGraph) -> dict[str, str]:
    """Return for each step that may never be created the decision about it."""
    decision_of: dict[str, str] = {}
    for name in graph.order:
        decisions = decisions_above(name, graph)
        inherited = [decision_of[parent] for parent in graph.parents[name] if parent in decision_of]
        if (decisions or inherited) and not graph.is_from(name, Origin.CONVERGENCE):
            decision_of[name] = (decisions or inherited)[0]
    return decision_of


def _is_pattern(name: str, graph: DependencyGraph) -> bool:
    return graph.is_from(name, Origin.BATCH)  # the rules of batches report steps that wait for one


def _is_unsure(name: str, graph: DependencyGraph) -> bool:
    return name in graph.tainted or name in graph.below_tainted


def has_something_to_converge(graph: DependencyGraph) -> None:
    """Check that a convergence depends on a batch_worker or on a conditional step."""
    for step in _convergences(graph):
        conditional = [parent for parent in graph.parents[step.name] if not graph.is_static(parent)]
        skipped = graph.may_be_missing.intersection(graph.parents[step.name])
        if conditional or skipped or step.name in graph.tainted or step.name in graph.below_tainted:
            continue
        message = f"the convergence `{step.name}` waits for no batch_worker and no conditional step"
        step.report("T053", message, step.location("dependencies"), _what_to_list(step, graph))


def _what_to_list(step: StepDraft, graph: DependencyGraph) -> str:
    deciding = [parent for parent in graph.parents[step.name] if graph.expands(parent)]
    if deciding:
        return f"list the steps that `{deciding[0]}` creates as well"
    return "nothing above it creates steps: make it a `type: standard`"


def lists_its_decision(graph: DependencyGraph) -> None:
    """Check that a convergence lists the decision of its branches; if no branch is taken, it waits for the decision."""
    for step in _convergences(graph):
        parents = graph.parents[step.name]
        branches = [parent for parent in reversed(parents) if not graph.is_from(parent, Origin.CONVERGENCE)]
        for decision, branch in {d: b for b in branches for d in decisions_above(b, graph)}.items():
            if decision not in parents:
                message = f"`{step.name}` waits for the branch `{branch}` but does not list its decision `{decision}`"
                step.report("T070", message, step.dependency_location(branch), f"add `{decision}` to the dependencies")


def waits_for_every_branch(graph: DependencyGraph) -> None:
    """Check that a convergence that lists a decision lists all its branches, unless they converge elsewhere."""
    for step in _convergences(graph):
        for decision in decisions_above(step.name, graph):
            for branch in branches_of(decision, graph):
                if branch not in graph.above_convergences:
                    message = f"`{step.name}` does not wait for `{branch}`, a branch of `{decision}`"
                    hint = f"add `{branch}` to the dependencies if the workflow must wait for it"
                    step.report("T072", message, step.location("dependencies"), hint)


def _convergences(graph: DependencyGraph) -> list[StepDraft]:
    return [step for name, step in graph.steps.items() if graph.is_from(name, Origin.CONVERGENCE)]
