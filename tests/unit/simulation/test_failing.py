"""Simulated tasks go on after failures as those of the engine do."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasker.template.compile import compile_text
from tasker.template.failure_words import DEAD, SKIPPED
from tasker.template.plan import Plan
from tasker.testing.simulation import mock, simulate
from tests.support.model.failing import drawn, end_of, expected, text
from tests.support.random_plans import Scenario, scenarios

START = datetime(2026, 3, 1, tzinfo=UTC)


def compiled(steps: str) -> Plan:
    lines = "\n".join(f"  - {{handler: h, {line.strip()}}}" for line in steps.strip().splitlines())
    result = compile_text(f"name: flow\nnamespace: tests\nversion: 1.0.0\nsteps:\n{lines}\n")
    assert result.ok, result.diagnostics
    return result.plans[0]


def test_random_failure_words_end_like_the_naive_model() -> None:
    for seed in range(100):
        random = Random(seed)
        graph = drawn(random)
        failing = {name for name in graph if random.random() < 0.45}
        mocks = {name: mock.fails("Broken", retryable=False) if name in failing else {} for name in graph}

        run = simulate(compiled(text(graph)), {}, mocks, at=START)

        states = {name: step.state + (f":{step.settled}" if step.settled else "") for name, step in run.steps.items()}
        assert states == expected(graph, failing), (seed, graph, failing)
        assert (run.status, run.outcome) == end_of(states)


def test_failure_branch_is_created_and_joined() -> None:
    plan = compiled(
        """
        name: pay, on_failure: {run: refund}
        name: ship, dependencies: [pay]
        name: refund
        name: close, type: deferred_convergence, dependencies: [ship, refund]
        """
    )
    well = simulate(plan, {}, {"pay": {}, "ship": {}, "close": {}}, at=START)
    assert well.route == ["pay", "ship", "close"]
    assert well.why("refund") == "it runs only if pay fails"

    mocks = {"pay": mock.fails("Declined", retryable=False), "refund": {}, "close": {}}
    failed = simulate(plan, {}, mocks, at=START)
    assert (failed.route, failed.outcome) == (["pay", "refund", "close"], "partial")
    assert failed.why("ship").startswith("it was skipped")


@pytest.mark.parametrize("takes", [1, 9])
def test_convergence_below_a_skipped_branch_does_not_run_whichever_batches_end_last(takes: int) -> None:
    plan = compiled(
        """
        name: cut, type: batchable
        name: each, type: batch_worker, dependencies: [cut], batch_config: {batch_size: 1}
        name: left, dependencies: [cut]
        name: slow
        name: split, type: batchable, dependencies: [slow], on_failure: skip_cascade
        name: part, type: batch_worker, dependencies: [split], batch_config: {batch_size: 1}
        name: right, dependencies: [split]
        name: both, dependencies: [left, right]
        name: close, type: deferred_convergence, dependencies: [both]
        """
    )
    mocks = {name: mock.result({}) for name in ("each", "left", "part", "right", "both", "close")}
    mocks |= {"cut": mock.batched(0, takes=f"{takes}s"), "slow": mock.result({}, takes="5s")}
    run = simulate(plan, {}, mocks | {"split": mock.fails("Broken", retryable=False)}, at=START)
    complete = {step.plan.name for step in run.steps.values() if step.state == "complete"}
    assert "close" not in complete
    assert (run.status, run.outcome) == ("complete", "partial")


@given(scenarios(), st.data())
def test_tasks_whose_steps_may_fail_always_end(scenario: Scenario, data: st.DataObject) -> None:
    """Decisions, batches, convergences in any mixture: nothing waits for ever, nothing runs below a dead step."""
    word = st.sampled_from(("continue", "skip_cascade", "optional"))
    words = {step.name: data.draw(word) for step in scenario.plan.steps}
    failing = data.draw(st.sets(st.sampled_from([*words])))
    plan = replace(scenario.plan, steps=tuple(replace(s, on_failure=words[s.name]) for s in scenario.plan.steps))
    mocks = {name: mock.result(scenario.results.get(name, {})) for name in words}
    mocks |= {name: mock.fails("Broken", retryable=False) for name in failing}

    run = simulate(plan, {}, mocks, at=START)

    assert run.status == "complete"
    for step in run.steps.values():
        dead = [run.steps[name].settled in DEAD for name in step.parents]
        if step.settled == SKIPPED:
            assert all(dead) if step.plan.type.converges else any(dead)
        else:
            assert not (dead and all(dead)) if step.plan.type.converges else not any(dead)
