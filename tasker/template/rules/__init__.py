"""Rules of the graph. Each rule reports on its own, so that all problems appear at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tasker.template.graph import DependencyGraph
from tasker.template.rules import batches, branches, breakers, convergence, events, execution, systems, times

RULES_OF_STEPS: tuple[Callable[[DependencyGraph], None], ...] = (
    batches.instance_names,
    batches.worker_has_one_batchable,
    batches.batchable_has_worker,
    batches.only_convergences_wait_for_workers,
    batches.batch_config_belongs_to_batches,
    batches.worker_template_fits,
    breakers.settings_agree,
    events.names_differ,
    execution.memory_belongs_to_processes,
    times.one_time_for_each_step,
)

RULES_OF_GRAPHS: tuple[Callable[[DependencyGraph], None], ...] = (
    branches.conditional_steps_are_reachable,
    branches.decisions_have_branches,
    branches.convergences_are_declared,
    convergence.has_something_to_converge,
    convergence.lists_its_decision,
    convergence.waits_for_every_branch,
    times.place_is_in_a_step_above,
)
"""Rules that use ancestors, which are undefined in a cyclic graph."""


def check_rules(graph: DependencyGraph, document: Mapping[str, Any]) -> None:
    """Apply every rule."""
    for rule in RULES_OF_STEPS if graph.cyclic else RULES_OF_STEPS + RULES_OF_GRAPHS:
        rule(graph)
    systems.declared(graph, document)
    events.every_event_is_published(graph, document)
