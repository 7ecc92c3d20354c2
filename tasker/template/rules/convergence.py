"""Rules of convergences and their dependencies."""

from __future__ import annotations

from tasker.contracts.step_types import Origin
from tasker.template.drafts import StepDraft
from tasker.template.graph import DependencyGraph
from tasker.template.rules.branches import branches_of, decisions_above


def has_something_to_converge(graph: DependencyGraph) -> None:
    """Check that a convergence depends on a batch_worker or on a conditional step."""
    for step in _convergences(graph):
        conditional = [parent for parent in graph.parents[step.name] if not graph.is_static(parent)]
        if conditional or step.name in graph.tainted or step.name in graph.below_tainted:
            continue
        message = f"the convergence `{step.name}` waits for no batch_worker and no conditional step"
        step.report("T053", message, step.place("dependencies"), _what_to_list(step, graph))


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
                step.report("T070", message, step.dependency_place(branch), f"add `{decision}` to the dependencies")


def waits_for_every_branch(graph: DependencyGraph) -> None:
    """Check that a convergence that lists a decision lists all its branches, unless they converge elsewhere."""
    for step in _convergences(graph):
        for decision in decisions_above(step.name, graph):
            for branch in branches_of(decision, graph):
                if branch not in graph.above_convergences:
                    message = f"`{step.name}` does not wait for `{branch}`, a branch of `{decision}`"
                    hint = f"add `{branch}` to the dependencies if the workflow must wait for it"
                    step.report("T072", message, step.place("dependencies"), hint)


def _convergences(graph: DependencyGraph) -> list[StepDraft]:
    return [step for name, step in graph.steps.items() if graph.is_from(name, Origin.CONVERGENCE)]
