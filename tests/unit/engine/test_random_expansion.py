"""Random dynamic graphs against a naive model: the same steps whatever the order, each created once, none too early."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from tasker.engine.expansion.choices import ExpansionLimits
from tasker.engine.expansion.graph import ExistingStep, NewStep
from tasker.engine.expansion.planner import expand, expand_resolved
from tasker.settings.execution import DecisionPoints
from tasker.template.plan import Plan
from tasker.template.step_types import StepType
from tests.support.random_plans import Scenario, scenarios

UNLIMITED = ExpansionLimits(DecisionPoints.for_single_process().replace(max_decision_depth=100))


# The naive model: from the choices alone, without any order of events.


def final_steps(scenario: Scenario) -> dict[str, list[str]]:
    """The instances of every template step that exist when the task has ended."""
    final: dict[str, list[str]] = {}
    for step in scenario.plan.steps:
        if instances := _instances(scenario, step.name, final):
            final[step.name] = instances
    return final


def _instances(scenario: Scenario, name: str, final: dict[str, list[str]]) -> list[str]:
    plan, step = scenario.plan, scenario.plan.by_name[name]
    if step.type is StepType.BATCH_WORKER:
        batchable = next(parent for parent in step.depends_on if plan.by_name[parent].type is StepType.BATCHABLE)
        return [f"{name}_{n + 1:03}" for n in range(_workers(scenario, batchable))] if batchable in final else []
    if step.static:
        exists = True
    elif step.type is StepType.DEFERRED:
        exists = any(parent in final for parent in step.depends_on) or not _in_untaken_branch(plan, name, final)
    else:
        exists = _is_named(scenario, name, final) or (
            all(parent in final and plan.by_name[parent].type is not StepType.DECISION for parent in step.depends_on)
        )
    return [name] if exists else []


def _workers(scenario: Scenario, batchable: str) -> int:
    return scenario.results[batchable]["batch_processing_outcome"].get("worker_count", 1)


def _is_named(scenario: Scenario, name: str, final: dict[str, list[str]]) -> bool:
    return any(
        name in result.get("decision_point_outcome", {}).get("step_names", ())
        for decision, result in scenario.results.items()
        if decision in final
    )


def _in_untaken_branch(plan: Plan, name: str, final: dict[str, list[str]]) -> bool:
    """Every way down to it shares a step that does not exist, at or after which something would have been decided."""
    ways = list(_missing_ways(plan, name, final))
    shared = set.intersection(*map(set, ways))
    return any(
        plan.by_name[later].type.expands
        for step in shared
        for way in _all_ways(plan, step, name)
        for later in way
        if later not in final
    )


def _missing_ways(plan: Plan, name: str, final: dict[str, list[str]]) -> Iterator[list[str]]:
    """The steps on each way from the nearest step that exists down to `name`, without both ends."""
    for parent in plan.by_name[name].depends_on:
        if parent in final:
            yield []
        else:
            yield from ([*way, parent] for way in _missing_ways(plan, parent, final))


def _all_ways(plan: Plan, start: str, end: str) -> Iterator[list[str]]:
    if start == end:
        yield []
    for child in plan.dependents[start]:
        yield from ([start, *way] for way in _all_ways(plan, child, end))


# The same by running: a task that completes its steps in a random order.


class Run:
    def __init__(self, scenario: Scenario, random: Random, broken: str | None = None) -> None:
        self.scenario, self.random, self.broken = scenario, random, broken
        self.parents = {step.name: step.depends_on for step in scenario.plan.steps if step.static}
        self.template = {name: name for name in self.parents}
        self.done: list[str] = []
        self.created_before: dict[str, int] = dict.fromkeys(self.parents, 0)

    def finish(self) -> Run:
        while ready := self.ready():
            self.complete(self.random.choice(ready))
        return self

    def ready(self) -> list[str]:
        return [
            name
            for name, parents in self.parents.items()
            if name not in self.done and name != self.broken and set(parents) <= set(self.done)
        ]

    def complete(self, name: str) -> None:
        if name in self.scenario.results:
            for step in self.expand(name):
                self.create(step)
            assert self.expand(name) == (), "a second delivery created steps"
        self.done.append(name)

    def expand(self, name: str) -> tuple[NewStep, ...]:
        existing = [ExistingStep(step, self.template[step], step not in self.done) for step in self.parents]
        self.random.shuffle(existing)
        return expand(self.scenario.plan, name, self.scenario.results[name], existing, UNLIMITED).steps

    def create(self, step: NewStep) -> None:
        assert step.name not in self.parents, "a step was created twice"
        assert step.parents, "a dynamic step waits for nothing"
        assert set(step.parents) <= set(self.parents), "a parent does not exist"
        self.parents[step.name], self.template[step.name] = step.parents, step.template_step

    def instances(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name in self.parents:
            found.setdefault(self.template[name], []).append(name)
        return {name: sorted(names) for name, names in found.items()}


@given(scenarios(), st.randoms(use_true_random=False))
def test_a_run_ends_with_the_steps_of_the_model_in_whatever_order(scenario: Scenario, random: Random) -> None:
    run = Run(scenario, random).finish()
    assert run.instances() == final_steps(scenario)
    assert len(run.done) == len(run.parents), "a step was never ready"


@given(scenarios(), st.randoms(use_true_random=False))
def test_a_convergence_waits_for_everything_that_it_joins_and_exists(scenario: Scenario, random: Random) -> None:
    run = Run(scenario, random).finish()
    final = final_steps(scenario)
    for step in scenario.plan.steps:
        if step.type is StepType.DEFERRED and step.name in final:
            joined = {instance for parent in step.depends_on for instance in final.get(parent, ())}
            parents = set(run.parents[step.name])
            assert parents == joined or (not joined and parents <= set(scenario.plan.above.of(step.name)))


@given(scenarios(), st.randoms(use_true_random=False))
def test_every_step_runs_after_the_steps_that_created_it(scenario: Scenario, random: Random) -> None:
    run = Run(scenario, random).finish()
    for name, parents in run.parents.items():
        position = run.done.index(name)
        assert all(run.done.index(parent) < position for parent in parents)


@given(scenarios(), st.randoms(use_true_random=False), st.data())
def test_no_convergence_passes_a_step_that_has_not_decided(scenario: Scenario, random: Random, data) -> None:
    expanding = [step for step in scenario.plan.steps if step.type.expands and step.static]
    if not expanding:
        return
    broken = data.draw(st.sampled_from(expanding))
    run = Run(scenario, random, broken.name).finish()
    convergences = {step.name for step in scenario.plan.steps if step.type is StepType.DEFERRED}
    assert not convergences.intersection(scenario.plan.below.of(broken.name)).intersection(run.parents)


@given(scenarios(), st.randoms(use_true_random=False))
def test_resolving_is_deciding_for_nothing(scenario: Scenario, random: Random) -> None:
    run = Run(scenario, random)
    existing = [ExistingStep(name, name, True) for name in run.parents]
    for step in scenario.plan.steps:
        if step.static and step.type.expands:
            key = "decision_point_outcome" if step.type is StepType.DECISION else "batch_processing_outcome"
            nothing = {key: {"type": "no_branches" if step.type is StepType.DECISION else "no_batches"}}
            by_person = expand_resolved(scenario.plan, step.name, existing, UNLIMITED)
            assert by_person == expand(scenario.plan, step.name, nothing, existing, UNLIMITED)
