"""Limits and circuit breakers hold within one simulated task."""

from __future__ import annotations

from tasker.simulation.simulate import simulate
from tasker.testing.simulation import mock
from tests.unit.simulation.test_simulate import plan_with

BATCHES = (
    "{name: cut, type: batchable, handler: n.cut}",
    "{name: work, type: batch_worker, handler: n.work, dependencies: [cut], LIMIT}",
)


def batches(limit: str, count: int = 6) -> int:
    plan = plan_with(*(step.replace("LIMIT", limit) for step in BATCHES))
    return simulate(plan, {}, {"cut": mock.batched(count), "work": mock.result({}, takes="10s")}).duration_ms


def test_limit_lets_so_many_run_at_the_same_time() -> None:
    assert [batches(f"concurrency: {{limit: {most}}}") for most in (1, 2, 6)] == [60_000, 30_000, 10_000]


def test_rate_lets_so_many_begin() -> None:
    assert batches("rate_limit: {rate: 12/m, burst: 1}") == 5 * 5_000 + 10_000
    assert batches("rate_limit: {rate: 12/m, burst: 3}") == 3 * 5_000 + 10_000


def test_open_breaker_defers_attempts_without_using_them() -> None:
    breaker = "circuit_breaker: {failure_threshold: 2, timeout_seconds: 60, success_threshold: 1}"
    plan = plan_with(f"{{name: call, handler: n.call, retry: {{max_attempts: 5, backoff_base_ms: 1}}, {breaker}}}")
    run = simulate(plan, {}, {"call": mock.fails("down", times=2).then({"up": True})})
    step = run.step("call")
    assert (str(step.state), step.attempts, len(step.failures)) == ("complete", 3, 2)
    assert run.duration_ms >= 60_000
    assert [str(state) for state in step.path].count("in_progress") == 4


def test_permanent_failures_do_not_open_a_breaker() -> None:
    breaker = "circuit_breaker: {name: api, failure_threshold: 1, timeout_seconds: 60, success_threshold: 1}"
    first = f"{{name: a, handler: n.a, on_failure: continue, {breaker}}}"
    steps = (first, f"{{name: b, handler: n.b, dependencies: [a], {breaker}}}")
    run = simulate(plan_with(*steps), {}, {"a": mock.fails(retryable=False), "b": mock.result({}, takes="1s")})
    assert run.duration_ms == 1_000


def test_limit_without_its_key_fails_the_step() -> None:
    plan = plan_with("{name: call, handler: n.call, concurrency: {limit: 1, key: input.account}}")
    assert simulate(plan, {"account": "a"}, mock_all=True).status == "complete"
    assert simulate(plan, {}, mock_all=True).step("call").error_type == "limit_key_missing"


def test_steps_of_other_keys_do_not_wait() -> None:
    steps = [
        f"{{name: s{n}, handler: n.s, concurrency: {{limit: 1, key: input.k{n % 2}, scope: template}}}}"
        for n in range(4)
    ]
    mocks = {f"s{n}": mock.result({}, takes="10s") for n in range(4)}
    assert simulate(plan_with(*steps), {"k0": "a", "k1": "b"}, mocks).duration_ms == 20_000
    assert simulate(plan_with(*steps), {"k0": "a", "k1": "a"}, mocks).duration_ms == 40_000
