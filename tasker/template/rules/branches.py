"""Rules of branches: the steps that a decision can create, and unreachable ones."""

from __future__ import annotations

from tasker.contracts.step_types import Creates, Origin
from tasker.template.diagnostics import listed
from tasker.template.graph import DependencyGraph


def conditional_steps_are_reachable(graph: DependencyGraph) -> None:
    """Check that a plain step with a dependency that may not exist is created by a decision.

    Exempt are steps behind a convergence, since the convergence always exists, and batch workers.
    """
    deciding = _deciding(graph)
    for name in graph.order:
        step = graph.steps[name]
        exempt = step.type is None or not step.type.is_plain
        if exempt or decisions_above(name, graph) or _is_unsure(name, graph):
            continue
        for parent in [p for p in graph.parents[name] if p in deciding and not _is_pattern(p, graph)][:1]:
            message = f"unreachable conditional step: `{name}` needs `{parent}`, which may not exist"
            hint = (
                f"add `{deciding[parent]}` to its dependencies, so that this decision can create it, "
                "or make it a `type: deferred_convergence`"
            )
            step.report("T054", message, step.dependency_place(parent), hint)


def decisions_have_branches(graph: DependencyGraph) -> None:
    """Check that a decision can create at least one step."""
    for name, step in graph.steps.items():
        decides = graph.makes(name, Creates.BRANCHES)
        if decides and not branches_of(name, graph) and graph.complete and not graph.tainted:
            message = f"the decision `{name}` has nothing to decide"
            step.report("T073", message, step.place("type"), f"a branch is a step with `{name}` among its dependencies")


def convergences_are_declared(graph: DependencyGraph) -> None:
    """Warn about a plain step that waits for a decision and several branches: a convergence was probably meant."""
    for name, step in graph.steps.items():
        for decision in decisions_above(name, graph) if graph.is_plain(name) and not graph.expands(name) else []:
            siblings = [p for p in graph.parents[name] if decision in graph.parents[p] and is_branch(p, graph)]
            if len(siblings) > 1:
                message = f"`{name}` is a branch of `{decision}` that waits for other branches: {listed(siblings)}"
                hint = "if it brings the branches together, make it a `type: deferred_convergence`"
                step.report("T074", message, step.name_place(), hint)


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
    found: dict[str, str] = {}
    for name in graph.order:
        decisions = decisions_above(name, graph)
        inherited = [found[parent] for parent in graph.parents[name] if parent in found]
        if (decisions or inherited) and not graph.is_from(name, Origin.CONVERGENCE):
            found[name] = (decisions or inherited)[0]
    return found


def _is_pattern(name: str, graph: DependencyGraph) -> bool:
    return graph.is_from(name, Origin.BATCH)  # the rules of batches report steps that wait for one


def _is_unsure(name: str, graph: DependencyGraph) -> bool:
    return name in graph.tainted or name in graph.below_tainted
