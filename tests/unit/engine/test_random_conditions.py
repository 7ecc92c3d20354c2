"""Random templates with `when`, `rules` and `for_each`: the steps that a run creates are those of a naive model."""

from __future__ import annotations

from math import ceil
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tasker.engine.expansion.graph import ExistingStep
from tasker.engine.expansion.planner import expand
from tasker.handlers.evaluated_steps import evaluated_result
from tasker.handlers.step_inputs import scope_of
from tasker.template import compile_text
from tasker.template.normalized import normalized_yaml
from tasker.template.plan import Plan
from tests.support.random_flows import FLAGS, Step, flows, plan_of


def expected(steps: list[Step], flags: list[bool], lists: dict[str, int]) -> dict[str, int]:
    """The number of instances of every step that exists in the end."""
    by_name = {step.name: step for step in steps}
    exists: dict[str, int] = {}
    for step in steps:
        there = all(name in exists for name in step.above) or step.kind == "join"
        for above in [by_name[name] for name in step.above if by_name[name].kind == "rules" and step.kind != "join"]:
            first = next((taken for flag, taken in above.rules if flag is None or flags[flag]), [])
            there = there and step.name in first
        if there and (step.flag is None or flags[step.flag]):
            exists[step.name] = max(1, ceil(lists[step.name] / step.batch_size)) if step.kind == "each" else 1
    return exists


def run(plan: Plan, values: dict[str, Any], random: Random) -> dict[str, int]:
    """Complete the steps of a task in a random order; return the number of instances of each of the author's steps."""
    parents = {step.name: step.depends_on for step in plan.steps if step.static}
    template = {name: name for name in parents}
    results: dict[str, Any] = {}
    while ready := [name for name in parents if name not in results and set(parents[name]) <= set(results)]:
        name = random.choice(ready)
        step = plan.by_name[template[name]]
        if step.type.expands:
            scope = scope_of(plan, "task", "correlation", 1, values, results)
            result = evaluated_result(step, scope)
            assert evaluated_result(step, scope) == result
            existing = [ExistingStep(other, template[other], other not in results) for other in parents]
            for new in expand(plan, name, result, existing).steps:
                assert new.name not in parents
                parents[new.name], template[new.name] = new.parents, new.template_step
        results[name] = result if step.type.expands else {}
    assert len(results) == len(parents), "a step was never ready"
    names = [template[name] for name in parents if plan.by_name[template[name]].made_for is None]
    return {name: names.count(name) for name in names}


@given(
    flows(),
    st.lists(st.booleans(), min_size=FLAGS, max_size=FLAGS),
    st.lists(st.integers(0, 4), min_size=10, max_size=10),
    st.randoms(use_true_random=False),
)
def test_the_steps_of_a_run_are_those_of_the_model(
    steps: list[Step], flags: list[bool], sizes: list[int], random: Random
) -> None:
    plan = plan_of(steps)
    lists = {f"s{number}": size for number, size in enumerate(sizes)}
    values = {"flags": flags, "lists": {name: list(range(size)) for name, size in lists.items()}}
    assert run(plan, values, random) == expected(steps, flags, lists)


@given(flows())
def test_every_template_survives_the_way_back(steps: list[Step]) -> None:
    plan = plan_of(steps)
    (again,) = compile_text(normalized_yaml(plan)).plans
    assert (again.hash, again.id) == (plan.hash, plan.id)
    assert Plan.from_json(plan.to_json()) == plan
