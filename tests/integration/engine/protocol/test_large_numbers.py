"""Whatever number a row, a template or a caller gives: one of them never stops a claim, a sweep or a namespace."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tasker.template.plan import Plan
from tests.integration.engine.protocol.conftest import Orchestra
from tests.support.engine_fixture import Lab, change, retry
from tests.support.random_plans import Spec

LARGEST_INT = 2_147_483_647
HUGE = [10**16, 9_223_372_036_854_775_807]
BEYOND = [1e30, 10**40]


def with_timeout(plan: Plan, seconds: float) -> Plan:
    return replace(plan, steps=tuple(replace(step, timeout_seconds=seconds) for step in plan.steps))


def years_left(lab: Lab, task: str, step: str, column: str = "deadline_at") -> float:
    (row,) = lab.observer.rows(
        f"""select extract(epoch from {column} - pg_catalog.now()) / 31557600 as years from tasker.workflow_steps
            where task_uuid = %s and name = %s""",
        task,
        step,
    )
    return float(row.years)


@pytest.mark.parametrize("count", [1_026, LARGEST_INT, -LARGEST_INT])
async def test_however_often_a_step_was_hinted_sweeps_find_what_is_lost(orchestra: Orchestra, count: int) -> None:
    lab = orchestra.lab
    often, other = lab.submit(lab.chain(1), {}, {})
    lab.observer.execute("update tasker.workflow_steps set hint_count = %s where task_uuid = %s", count, often)
    lab.lose_hints()

    assert await orchestra.sweep() == {"hint_lost": 2}
    assert not await orchestra.sweep()
    assert lab.one.run_all() == 2
    assert lab.task(other).state == "complete"


def test_the_gap_between_hints_of_a_step_stops_growing(lab: Lab) -> None:
    """Sixty-four times the grace, however often it was hinted: the step is not given up."""
    lab.submit_one(lab.chain(1))
    lab.observer.execute("update tasker.workflow_steps set hint_count = 40 where namespace_id = %s", lab.namespace_id)

    def overdue(seconds: float) -> bool:
        lab.one.set_time(seconds)
        found = lab.one.core("sweep", {"hint_grace_ms": 1000, "limit": 1000}).get("unhinted", ())
        return any(row["namespace"] == lab.namespace for row in found)

    assert [overdue(60), overdue(100)] == [False, True]


@pytest.mark.parametrize("seconds", [1.0e13, 1e300, -5.0])
def test_a_template_with_any_timeout_can_be_registered_claimed_and_handed_over(lab: Lab, seconds: float) -> None:
    plan = with_timeout(lab.chain(2), seconds)
    task, claims = lab.running(plan)

    (handed,) = lab.one.finish(claims["s0"], slots=1)["claims"]

    assert years_left(lab, task, "s1") == pytest.approx(100 if seconds > 0 else 0, abs=0.01)
    lab.one.finish(handed)
    assert lab.task(task).state == "complete"


@pytest.mark.parametrize("milliseconds", HUGE)
def test_a_registered_template_whose_timeout_is_too_long_blocks_nobody(lab: Lab, milliseconds: int) -> None:
    """It came into the table before such a time-out was refused."""
    other = lab.submit_one(lab.chain(1, "other"))
    bad = lab.submit_one(lab.chain(2, "bad"))
    lab.observer.execute(
        """update tasker.template_steps set timeout_ms = %s
           where template_id = (select template_id from tasker.tasks where task_uuid = %s)""",
        milliseconds,
        bad,
    )

    assert lab.one.run_all() == 3

    assert {lab.task(task).state for task in (other, bad)} == {"complete"}


@pytest.mark.parametrize("attempts", [1, 10**10, 10**30])
def test_any_number_of_attempts_can_be_registered(lab: Lab, attempts: int) -> None:
    plan = lab.chain(1)
    step = plan.steps[0]
    plan = replace(plan, steps=(replace(step, retry=replace(step.retry, max_attempts=attempts)),))

    task = lab.submit_one(plan)

    assert lab.steps(task)["s0"].max_attempts == min(attempts, LARGEST_INT)


def test_a_step_that_was_tried_as_often_as_can_be_counted_is_claimed_all_the_same(lab: Lab) -> None:
    task = lab.submit_one(lab.plan(Spec("a"), Spec("b", depends_on=("a",))))
    lab.observer.execute("update tasker.workflow_steps set attempts = %s where task_uuid = %s", LARGEST_INT, task)

    (claim,) = lab.one.claim()
    (handed,) = lab.one.finish(claim, slots=1)["claims"]

    assert (claim["attempt"], handed["attempt"]) == (LARGEST_INT, LARGEST_INT)
    lab.one.finish(handed)


@pytest.mark.parametrize("delay", [*HUGE, *BEYOND, 1.5, -1])
@pytest.mark.parametrize("kind", ["retry", "defer"])
def test_any_delay_can_be_asked_for(lab: Lab, kind: str, delay: Any) -> None:
    task, claims = lab.running(lab.chain(1))
    item = retry(claims["s0"], delay) if kind == "retry" else change("defer", claims["s0"], d=delay)

    assert not lab.one.advance(item).get("verdicts")

    assert years_left(lab, task, "s0", "due_at") == pytest.approx(100 if delay > 2 else 0, abs=0.01)


@pytest.mark.parametrize("number", [*HUGE, *BEYOND, -1])
def test_any_time_out_or_grace_can_be_given_with_a_call(lab: Lab, number: Any) -> None:
    _, claims = lab.running(lab.chain(1))
    held = {"worker": lab.one.worker, "step": claims["s0"]["step"], "token": claims["s0"]["token"]}
    times = {"timeout_ms": number, "grace_ms": number}

    assert lab.one.core("begin", {**held, **times}) == {}
    assert lab.one.core("checkpoint", {**held, **times, "cursor": 1})["checkpoint"]["cursor"] == 1
    parked = lab.one.core("park", {"worker": lab.one.worker, "items": [retry(claims["s0"], number, ms=number)]})
    assert len(parked["parked"]) == 1
    for session in (lab.one, lab.two):
        session.start_worker(lease_ms=number)
    lab.one.core("worker", {"action": "forget", "worker": lab.one.worker, "older_ms": number})
    graces = dict.fromkeys(("hint_grace_ms", "park_grace_ms", "idle_grace_ms", "unserved_ms"), number)
    assert "last" in lab.one.core("sweep", {"limit": 1000, **graces})
    assert lab.one.core("failure_bursts", {"failures": 3, "window_seconds": number, "resume_seconds": number})
    lab.one.core("repair", {"every_ms": number})


@pytest.mark.parametrize("drift", [-(2**40), 2**40])
async def test_a_counter_of_the_queue_that_is_far_off_stops_no_submission_and_is_repaired(
    orchestra: Orchestra, drift: int
) -> None:
    lab = orchestra.lab
    lab.submit_one(lab.chain(1))
    lab.observer.execute("update tasker.enqueue_counters set enqueued = enqueued + %s", drift)
    lab.submit_one(lab.chain(1))
    lab.one.claim()

    repaired = await orchestra.sweep()

    assert repaired["enqueued_miscounted"] == 1
    assert lab.submit_one(lab.chain(1))
