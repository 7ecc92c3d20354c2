"""A step that an open circuit breaker or its own handler puts off waits like a retry, and has used no attempt."""

from __future__ import annotations

import pytest

from tests.support.engine_fixture import Item, Lab, change, ok, operator, verdict


def test_a_deferred_step_waits_for_its_time_without_an_attempt(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))

    answer = lab.one.advance(change("defer", claims["s0"], d=30_000, n={"reason": "open"}))

    step = lab.steps(task)["s0"]
    assert verdict(answer, claims["s0"]) == "accepted"
    assert (step.state, step.attempts) == ("waiting_for_retry", 0)
    assert lab.task(task).state == "waiting_for_retry"
    assert lab.step_paths(task, "s0")[-1] == "in_progress>waiting_for_retry"
    assert not lab.observer.rows("select from tasker.step_failures where task_uuid = %s", task)


def test_it_runs_when_its_time_has_come_as_its_first_attempt(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(change("defer", claims["s0"], d=30_000))
    lab.one.set_time(seconds=20)
    assert not lab.one.call("due", lab.one.args(slots=1)).get("claims")
    lab.one.set_time(seconds=40)

    (claim,) = lab.one.call("due", lab.one.args(slots=1))["claims"]

    assert claim["attempt"] == 1
    lab.one.finish(claim)
    assert lab.task(task).state == "complete"


def test_what_still_runs_under_the_deferred_claim_is_refused(lab: Lab) -> None:
    _, claims = lab.running(lab.chain(1))
    lab.one.advance(change("defer", claims["s0"], d=0))

    assert verdict(lab.one.advance(ok(claims["s0"])), claims["s0"]) == "stale"


def snooze(claim: Item, seconds: float = 30, limit: int = 3) -> Item:
    return change("snooze", claim, d=seconds * 1000, sn=limit, n={"reason": "not paid yet"})


def test_a_snoozed_step_is_called_again_as_the_same_attempt(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))

    lab.one.advance(snooze(claims["s0"]), snoozes=True)

    step = lab.steps(task)["s0"]
    assert (step.state, step.attempts) == ("waiting_for_retry", 0)
    assert not lab.observer.rows("select from tasker.step_failures where task_uuid = %s", task)
    lab.one.set_time(seconds=40)
    (claim,) = lab.one.call("due", lab.one.args(slots=1))["claims"]
    assert claim["attempt"] == 1
    lab.one.finish(claim)
    assert lab.task(task).state == "complete"


def snoozed_until_it_fails(lab: Lab, claim: Item, limit: int) -> int:
    """How often the step could be snoozed before it failed."""
    for number in range(20):
        lab.one.advance(snooze(claim, 1, limit), snoozes=True)
        lab.one.set_time(seconds=10 * (number + 1))
        claims = lab.one.call("due", lab.one.args(slots=1)).get("claims")
        if not claims:
            return number
        (claim,) = claims
    raise AssertionError("it never failed")


@pytest.mark.parametrize("limit", [1, 3])
def test_a_step_that_is_snoozed_too_often_fails(lab: Lab, limit: int) -> None:
    task, claims = lab.running(lab.chain(1))

    assert snoozed_until_it_fails(lab, claims["s0"], limit) == limit

    error = lab.observer.value("select error from tasker.step_failures where task_uuid = %s", task)
    assert error["error_type"] == error["final_reason"] == "snoozed_too_often"
    assert lab.task(task).state == "error"


def test_a_reset_step_may_be_snoozed_as_often_again(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    snoozed_until_it_fails(lab, claims["s0"], 2)
    lab.one.set_time(0)
    lab.one.advance(operator("reset", lab.steps(task)["s0"]))
    (claim,) = lab.one.claim()

    assert snoozed_until_it_fails(lab, claim, 2) == 2


def test_a_late_snooze_is_refused(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    lab.one.finish(claims["s0"])

    assert verdict(lab.one.advance(snooze(claims["s0"]), snoozes=True), claims["s0"]) == "stale"
    assert lab.task(task).state == "complete"
