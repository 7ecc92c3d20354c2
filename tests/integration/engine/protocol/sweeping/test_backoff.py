"""Delays between attempts: one place decides them, the database keeps exactly them, and rivals cannot shorten them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tasker.engine.retry import delay_ms
from tasker.handlers.claims import Failure
from tasker.template.plan import RetryPolicy
from tests.integration.engine.protocol.conftest import Orchestra, result_of
from tests.support.engine_fixture import Lab, retry, verdict
from tests.support.random_plans import Spec

POLICIES = {
    "exponential": RetryPolicy(max_attempts=50, backoff_base_ms=1000, max_backoff_ms=60_000, jitter=0.1),
    "capped": RetryPolicy(max_attempts=50, backoff_base_ms=1000, max_backoff_ms=5_000, jitter=0.0),
    "linear": RetryPolicy(max_attempts=50, backoff="linear", backoff_base_ms=300, max_backoff_ms=60_000),
    "fibonacci": RetryPolicy(max_attempts=50, backoff="fibonacci", backoff_base_ms=700, max_backoff_ms=60_000),
}


@pytest.mark.parametrize("name", POLICIES)
@pytest.mark.parametrize("failures", [1, 2, 11, 21])
async def test_the_time_in_the_database_is_the_delay_of_the_policy(
    orchestra: Orchestra, name: str, failures: int
) -> None:
    lab, policy = orchestra.lab, POLICIES[name]
    plan = lab.plan(Spec("a", retry=policy))
    lab.submit(plan)
    lab.observer.execute("update tasker.workflow_steps set attempts = %s", failures - 1)
    (claim,) = lab.one.claim()

    await orchestra.process(result_of(plan, claim, failure=Failure("it broke", "TestError", retryable=True)))

    row = lab.steps(claim["task"])["a"]
    least, most = (delay_ms(policy, failures, edge) for edge in (0.0, 1.0))
    assert row.state == "waiting_for_retry"
    assert timedelta(milliseconds=least) <= row.due_at - row.updated_at <= timedelta(milliseconds=most)
    assert most <= policy.max_backoff_ms


async def test_a_failure_that_asks_for_a_delay_gets_exactly_that(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    plan = lab.plan(Spec("a", retry=POLICIES["exponential"]))
    lab.submit(plan)
    (claim,) = lab.one.claim()

    failure = replace(Failure("come back later", "TestError", retryable=True), retry_after=77.5)
    await orchestra.process(result_of(plan, claim, failure=failure))

    row = lab.steps(claim["task"])["a"]
    assert row.due_at - row.updated_at == timedelta(seconds=77.5)


def test_of_two_processes_that_bring_one_failure_the_first_decides_the_delay_and_the_second_changes_nothing(
    lab: Lab,
) -> None:
    task, claims = lab.running(lab.plan(Spec("a", retry=POLICIES["linear"])))

    with lab.transaction(lab.one):
        lab.one.advance(retry(claims["a"], delay_ms=5_000))
        second = lab.later(lab.two.advance, retry(claims["a"], delay_ms=1))
        lab.waits(second, lab.two, lab.one)

    assert verdict(second.result(), claims["a"]) == "already_accepted"
    row = lab.steps(task)["a"]
    assert (row.attempts, row.due_at - row.updated_at) == (1, timedelta(seconds=5))
    failures = lab.observer.rows("select * from tasker.step_failures where task_uuid = %s", task)
    assert len(failures) == 1
