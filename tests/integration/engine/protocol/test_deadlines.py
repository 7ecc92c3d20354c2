"""Tasks with a deadline: when it has passed, their open steps fail; what cannot be done in time fails at once."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.template.plan import RetryPolicy
from tests.integration.engine.protocol.test_delays import HOUR, HOUR_MS, at, due, timers
from tests.support.engine_fixture import Lab, change, fail, ok, operator, retry
from tests.support.random_plans import Spec

GATE = 256


def dated(lab: Lab, seconds: float = HOUR, steps: int = 2, **entry: Any) -> str:
    lab.one.set_time(0)
    (task,) = lab.submit(lab.chain(steps), {"deadline_ms": seconds * 1000, **entry})
    return task


def errors(lab: Lab, task: str) -> list[str]:
    query = "select error->>'error_type' from tasker.step_failures where task_uuid = %s order by failure_id"
    return [row[0] for row in lab.observer.rows(query, task)]


def step_of(lab: Lab, task: str, name: str = "s0") -> str:
    return str(lab.steps(task)[name].workflow_step_uuid)


def test_open_steps_fail_when_the_deadline_has_passed(lab: Lab) -> None:
    task = dated(lab)
    lab.one.set_time(HOUR - 1)
    assert not due(lab.one).get("promoted")
    lab.one.set_time(HOUR + 1)
    answer = due(lab.one)

    assert answer["finished"] == {task: "error"}
    assert lab.states(task) == {"s0": "error", "s1": "pending"}
    assert errors(lab, task) == ["deadline_exceeded"]
    assert timers(lab) == []


def test_a_deadline_may_be_a_time_and_counts_a_delay_if_it_is_a_duration(lab: Lab) -> None:
    lab.one.set_time(0)
    lab.submit(lab.chain(1), {"deadline": at(lab, HOUR)}, {"deadline_ms": HOUR_MS, "delay_ms": HOUR_MS})

    assert sorted(timers(lab)) == [("b", HOUR), ("d", HOUR), ("d", 2 * HOUR)]


def test_a_running_step_loses_its_claim_to_the_deadline_and_its_result_is_refused(lab: Lab) -> None:
    task = dated(lab)
    (claim,) = lab.one.claim()
    lab.one.set_time(HOUR + 1)
    due(lab.one)

    assert lab.states(task)["s0"] == "error"
    assert lab.one.advance(ok(claim))["verdicts"] == {claim["step"]: "stale"}


def test_claims_say_how_much_time_is_left(lab: Lab) -> None:
    task = dated(lab)
    lab.one.set_time(HOUR / 4)

    answer = lab.one.call("claim", lab.one.args(steps=[step_of(lab, task)]))

    assert answer["tasks"][task]["left_ms"] == pytest.approx(0.75 * HOUR_MS, abs=5000)


@pytest.mark.parametrize("ended", ["complete", "cancelled", "error"])
def test_a_task_that_ends_has_no_timer_left(lab: Lab, ended: str) -> None:
    task = dated(lab, steps=1)
    if ended == "cancelled":
        lab.one.call("cancel", {"task": task, "worker": lab.one.worker})
    elif ended == "complete":
        lab.one.run_all()
    else:
        (claim,) = lab.one.claim()
        lab.one.advance(fail(claim))

    assert lab.task(task).state == ended
    assert timers(lab) == []


def test_a_result_that_waits_for_an_orchestrator_counts_and_nothing_follows_it(lab: Lab) -> None:
    task = dated(lab)
    (claim,) = lab.one.claim()
    lab.one.call("park", {"worker": lab.one.worker, "items": [ok(claim)]})
    lab.one.set_time(HOUR + 1)
    due(lab.one)
    assert lab.states(task)["s0"] == "enqueued_for_orchestration"
    assert timers(lab) == [("d", HOUR + 2)]
    lab.one.advance(change("ok", claim))
    lab.one.set_time(HOUR + 3)
    due(lab.one)

    assert lab.states(task) == {"s0": "complete", "s1": "error"}
    assert lab.task(task).state == "error"
    assert timers(lab) == []


def test_a_task_that_waits_for_an_operator_ends_with_its_deadline(lab: Lab) -> None:
    task = dated(lab)
    (claim,) = lab.one.claim()
    lab.one.advance(fail(claim), on_blocked="wait")
    assert lab.task(task).state == "blocked_by_failures"
    lab.one.set_time(HOUR + 1)

    answer = lab.one.call("due", lab.one.args(on_blocked="wait"))

    assert answer["finished"] == {task: "error"}
    assert timers(lab) == []


def test_an_operator_who_repairs_a_task_in_time_restores_its_deadline(lab: Lab) -> None:
    task = dated(lab)
    (claim,) = lab.one.claim()
    lab.one.advance(fail(claim))
    assert timers(lab) == []
    lab.one.advance(operator("reset", lab.steps(task)["s0"]))

    assert timers(lab) == [("d", HOUR)]
    assert lab.task(task).gates == GATE


def test_an_operator_who_repairs_an_overdue_task_decides_that_it_goes_on(lab: Lab) -> None:
    task = dated(lab)
    lab.one.set_time(HOUR + 1)
    due(lab.one)
    lab.one.advance(operator("reset", lab.steps(task)["s0"]))
    lab.one.set_time(2 * HOUR)
    due(lab.one)
    lab.one.run_all()

    assert lab.task(task).state == "complete"


@pytest.mark.parametrize("way", ["root", "child"])
def test_a_step_that_would_begin_after_the_deadline_fails_at_once(lab: Lab, way: str) -> None:
    lab.one.set_time(0)
    late = Spec("late", delay=2 * HOUR)
    plan = (
        lab.plan(late, name=way)
        if way == "root"
        else lab.plan(Spec("a"), Spec("late", depends_on=("a",), delay=2 * HOUR), name=way)
    )
    (task,) = lab.submit(plan, {"deadline_ms": HOUR_MS})
    if way == "child":
        lab.one.finish(*lab.one.claim())
    lab.one.set_time(1)
    due(lab.one)

    assert lab.states(task)["late"] == "error"
    assert errors(lab, task) == ["deadline_too_near"]
    assert lab.task(task).state == "error"


def test_a_step_delayed_until_shortly_before_the_deadline_begins(lab: Lab) -> None:
    lab.one.set_time(0)
    (task,) = lab.submit(lab.plan(Spec("late", delay=0.9 * HOUR), name="near"), {"deadline_ms": HOUR_MS})
    lab.one.set_time(0.95 * HOUR)
    due(lab.one)

    assert lab.states(task) == {"late": "enqueued"}


def test_a_retry_that_is_due_with_the_deadline_does_not_begin(lab: Lab) -> None:
    task = dated(lab)
    (claim,) = lab.one.claim()
    lab.one.advance(retry(claim, delay_ms=HOUR_MS))
    lab.one.set_time(HOUR + 1)
    due(lab.one, slots=5)

    assert lab.states(task)["s0"] == "error"
    assert timers(lab) == []


def test_further_attempts_of_a_step_with_max_elapsed_know_when_the_first_began(lab: Lab) -> None:
    lab.one.set_time(0)
    plan = lab.plan(Spec("a", retry=RetryPolicy(max_elapsed_ms=HOUR_MS)), Spec("b"), name="elapsed")
    _, claims = lab.running(plan)
    lab.one.set_time(60)
    lab.one.advance(*(retry(claim, delay_ms=1000) for claim in claims.values()))
    lab.one.set_time(90)
    (handed,) = due(lab.one, slots=1)["claims"]
    queued = lab.one.claim()

    ran = {claim["name"]: claim.get("ran_ms") for claim in (handed, *queued)}
    assert ran == {"a": pytest.approx(90_000, abs=5000), "b": None}
    assert {claim["name"]: claim.get("ran_ms") for claim in claims.values()} == {"a": None, "b": None}


def test_a_sweep_says_of_lost_steps_how_much_time_is_left(lab: Lab) -> None:
    lab.one.set_time(0)
    plan = lab.plan(Spec("a", retry=RetryPolicy(max_elapsed_ms=HOUR_MS)), name="lost")
    lab.running(plan, deadline_ms=HOUR_MS)
    lab.one.set_time(1200)

    (orphan,) = lab.one.core("sweep", {})["orphans"]

    assert orphan["left_ms"] == pytest.approx(2_400_000, abs=5000)
    assert orphan["ran_ms"] == pytest.approx(1_200_000, abs=5000)


def test_steps_that_begin_with_their_submission_know_how_much_time_is_left(lab: Lab) -> None:
    answer = lab.one.submit(lab.chain(1), {"deadline_ms": HOUR_MS}, **lab.one.args(slots=5))

    (task,) = answer["created"]
    assert answer["tasks"][task]["left_ms"] == pytest.approx(HOUR_MS, abs=5000)
