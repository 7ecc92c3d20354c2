"""Random dynamic graphs that run again from one of their steps: what is left grows into the same graph."""

from __future__ import annotations

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from tasker.engine.expansion.graph import ExistingStep
from tasker.services.operators.reruns import RerunScope, rerun_from
from tests.support.random_plans import Scenario, scenarios
from tests.unit.engine.test_random_expansion import UNLIMITED, Run


def rerun_of(run: Run, start: str) -> RerunScope:
    existing = [ExistingStep(name, run.template[name], name not in run.done) for name in run.parents]
    decided = {name: result for name, result in run.scenario.results.items() if name in run.done}
    return rerun_from(run.scenario.plan, start, existing, decided, UNLIMITED)


def left_of(run: Run, rerun: RerunScope) -> Run:
    """The task that begins with what is left."""
    again = Run(run.scenario, run.random)
    kept = {name: parents for name, parents in run.parents.items() if name not in rerun.dropped}
    again.parents = {name: tuple(parent for parent in parents if parent in kept) for name, parents in kept.items()}
    again.template = {name: run.template[name] for name in again.parents}
    again.done = [name for name in run.done if name in again.parents and name not in rerun.again]
    return again


def some(run: Run, data: st.DataObject) -> Run:
    """The run before its end: not all of its steps are done."""
    for _ in range(data.draw(st.integers(0, len(run.scenario.plan.steps) + 3))):
        if ready := run.ready():
            run.complete(run.random.choice(ready))
    return run


@given(scenarios(), st.randoms(use_true_random=False), st.data())
@settings(max_examples=60)
def test_a_task_grows_into_the_same_graph_again_and_keeps_what_is_done_and_not_below(
    scenario: Scenario, random: Random, data: st.DataObject
) -> None:
    run = some(Run(scenario, random), data)
    start = data.draw(st.sampled_from(sorted(run.parents)))
    rerun, below = rerun_of(run, start), scenario.plan.below.of(run.template[start])

    for name in run.parents:
        reused = name in run.done and name != start and run.template[name] not in below
        assert reused is (name not in rerun.again | rerun.dropped)

    undecided = Run(scenario, random)
    while ready := [name for name in undecided.ready() if name not in rerun.again | rerun.dropped]:
        undecided.complete(min(ready, key=run.done.index))  # in another order a step may wait for more than it did
    assert rerun.dropped == run.parents.keys() - undecided.parents.keys(), "what is decided anew is there already"

    left = left_of(run, rerun)
    assert start in left.ready() or set(left.parents[start]) - set(left.done)
    static = {step.name for step in scenario.plan.steps if step.static}
    assert all(parents for name, parents in left.parents.items() if left.template[name] not in static)
    left.finish()
    assert left.instances() == run.finish().instances()
    assert len(left.done) == len(left.parents), "a step was never ready"
