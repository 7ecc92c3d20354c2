"""Exploration runs every way through a graph, and shows what no way reaches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

import pytest

from tasker.simulation.explore import explore
from tasker.simulation.simulate import workflow_of
from tasker.template.plan import Plan, StepPlan
from tests.unit.simulation.test_simulate import plan_with

EXAMPLES = sorted((Path(__file__).parents[3] / "workflows").glob("*/workflow.yaml"))

SIMULATED = {
    *("effect", "on_failure", "run_on_failure", "handles", "at_rest", "undoes", "limits", "circuit_breaker"),
    "publishes_events",
    *("name", "type", "handler", "ordinal", "level", "depends_on", "static", "retry", "inherits", "timeout_seconds"),
    *(
        "delay_seconds",
        "not_before",
        "on_worker_lost",
        "result_schema",
        "inputs",
        "rules",
        "for_each",
        "made_for",
        "wait",
    ),
    *("batch", "namespace", "version", "steps", "input_schema", "expires_in_seconds", "deadline_seconds"),
}
"""Fields of plans and steps that a simulated run follows."""
OF_OTHERS = {
    "memoize",
    *("requires", "slots", "execution", "memory_mb", "concurrency", "priority"),
    *(
        "debounce",
        "release",
        "fairness",
        "tenant",
        "unique",
        "max_submits_per_minute",
        "schedules",
        "identity_strategy",
    ),
}
"""Fields that are about other tasks, workers or submissions: one simulated task has neither."""
TEXTS = {
    *("lifecycle", "system_dependency", "description", "metadata", "system_dependencies"),
    *("domain_events", "environment", "task_events"),
}
"""Fields that change nothing in a run's steps."""


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: file.parent.name)
def test_every_example_is_covered_completely_without_problems(file: Path) -> None:
    workflow = workflow_of(file)
    done = explore(workflow.plan, workflow.lines)
    assert done.is_whole
    assert done.findings == ()
    assert [str(item) for item in done.coverage.missing] == []


def test_each_field_of_a_template_is_simulated_or_of_no_effect() -> None:
    known = {field.name for cls in (Plan, StepPlan) for field in fields(cls)}
    assert known == SIMULATED | OF_OTHERS | TEXTS


def test_a_branch_that_no_rule_takes_is_found() -> None:
    plan = plan_with(
        "{name: choose, type: decision, rules: [{when: input.a, then: [left]}, {else: []}]}",
        "{name: left, dependencies: [choose], handler: h}",
        "{name: right, dependencies: [choose], handler: h}",
        "{name: below, dependencies: [right], handler: h}",
    )
    done = explore(plan, {"right": "w.yaml:8"})
    assert [(each.step, each.message, each.place) for each in done.findings] == [
        ("right", "no path leads to it", "w.yaml:8"),
        ("below", "no path leads to it", ""),
    ]
    assert [str(item) for item in done.coverage.missing] == [
        *("right", "right: fails", "right: retried", "below", "below: fails", "below: retried"),
    ]


def test_a_convergence_that_joins_one_step_at_most_is_found() -> None:
    plan = plan_with(
        "{name: choose, type: decision, rules: [{when: input.a, then: [left]}, {else: [right]}]}",
        "{name: left, dependencies: [choose], handler: h}",
        "{name: right, dependencies: [choose], handler: h}",
        "{name: join, type: deferred, dependencies: [left, right], handler: h}",
    )
    assert [each.message for each in explore(plan).findings] == [
        "it never joins more than one step: `type: standard` is enough"
    ]


def test_a_decision_takes_every_combination_of_few_branches_and_each_of_many() -> None:
    def routes(branches: int) -> int:
        names = [f"b{number}" for number in range(branches)]
        steps: Sequence[str] = [f"{{name: {name}, dependencies: [choose], handler: h}}" for name in names]
        return explore(plan_with("{name: choose, type: decision, handler: h}", *steps)).routes

    assert [routes(count) for count in (2, 4, 6)] == [4, 16, 8]


def test_an_exploration_stops_after_the_maximum_number_of_runs() -> None:
    plan = plan_with(*(f"{{name: s{number}, handler: h}}" for number in range(20)))
    done = explore(plan, most_runs=50)
    assert (done.runs, done.is_whole) == (50, False)


def test_failures_are_explored_once_for_good_and_in_pairs() -> None:
    plan = plan_with(*(f"{{name: s{number}, handler: h}}" for number in range(3)))
    assert explore(plan).runs == 1 + 3 * 2 + 3
