"""A step that an open circuit breaker puts off waits like a retry, and has used no attempt."""

from __future__ import annotations

from tests.support.engine_fixture import Lab, change, ok, verdict


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
