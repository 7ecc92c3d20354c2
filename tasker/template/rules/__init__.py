"""Rules of the graph. Each rule reports on its own, so that all problems appear at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tasker.template.documents import StepDraft
from tasker.template.graph import DependencyGraph
from tasker.template.rules import (
    children,
    compensations,
    conditions,
    declarations,
    effects,
    failures,
    inputs,
    last_steps,
    submissions,
    times,
    waits,
)
from tasker.template.rules import graph as graph_rules

RULES_OF_STEPS: tuple[Callable[[DependencyGraph], None], ...] = (
    graph_rules.instance_names,
    graph_rules.worker_has_one_batchable,
    graph_rules.batchable_has_worker,
    graph_rules.only_convergences_wait_for_workers,
    graph_rules.batch_config_belongs_to_batches,
    graph_rules.worker_template_fits,
    declarations.settings_agree,
    declarations.names_differ,
    declarations.memory_belongs_to_processes,
    times.one_time_for_each_step,
    times.one_number_for_each_limit,
    conditions.keys_fit_their_step,
    conditions.rules_name_their_branches,
    conditions.handlers_are_names,
    times.each_limit_once,
    failures.branches_exist,
    effects.keys_fit_the_effect,
    effects.results_may_be_stored,
    waits.waits_have_an_end,
)

RULES_OF_GRAPHS: tuple[Callable[[DependencyGraph], None], ...] = (
    graph_rules.conditional_steps_are_reachable,
    graph_rules.branches_of_rules_are_certain,
    graph_rules.decisions_have_branches,
    graph_rules.convergences_are_declared,
    graph_rules.has_something_to_converge,
    graph_rules.lists_its_decision,
    graph_rules.waits_for_every_branch,
    times.places_are_in_steps_above,
    conditions.chain_is_short,
    failures.branches_stand_alone,
    failures.branches_are_joined_by_convergences,
)
"""Rules that use ancestors, which are undefined in a cyclic graph."""


def check_rules(
    graph: DependencyGraph, document: Mapping[str, Any], written: Mapping[str, StepDraft], strict: bool
) -> None:
    """Apply every rule; `written` are the steps as their author wrote them, by name."""
    for rule in RULES_OF_STEPS if graph.cyclic else RULES_OF_STEPS + RULES_OF_GRAPHS:
        rule(graph)
    failures.words_agree(graph, document)
    compensations.something_is_undone(graph, document)
    compensations.fit_their_steps(graph)
    compensations.names_are_free(graph, written)
    last_steps.exist(graph, document)
    last_steps.stand_alone(graph)
    last_steps.are_standard_steps(graph)
    times.deadline_is_after_all_delays(graph, document)
    conditions.names_are_free(graph, written)
    inputs.expressions_fit(graph, document, strict)
    children.children_are_complete(graph, document)
    submissions.places_fit_the_input(graph, document)
    effects.overrides_fit_the_effect(graph, document)
    declarations.declared(graph, document)
    declarations.every_event_is_published(graph, document)
