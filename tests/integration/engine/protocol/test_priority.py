"""Rule 17: ready steps beyond the enqueue window are held and released by rank, so nothing waits for everything."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.engine_fixture import Answer, Lab, change, operator, retry, verdict
from tests.support.random_plans import Spec


def release(lab: Lab, **more: Any) -> Answer:
    return lab.one.call("backlog", lab.one.args(**more))


def work(lab: Lab, until: str, slots: int = 10) -> int:
    """Claim and finish as a worker does; how many claims until that task's one."""
    claimed = 0
    while True:
        claims = lab.one.take(slots)
        assert claims, "nothing left, and the task was never claimed"
        claimed += len(claims)
        lab.one.finish(*claims)
        if any(claim["task"] == until for claim in claims):
            return claimed


def test_ready_steps_beyond_the_window_are_held(lab: Lab) -> None:
    lab.window = 5
    tasks = lab.submit(lab.plan(Spec("a"), Spec("b"), Spec("c")), *({} for _ in range(4)))

    states = [state for task in tasks for state in lab.states(task).values()]
    assert (states.count("enqueued"), states.count("pending")) == (5, 7)
    assert sum(lab.task(task).held for task in tasks) == 7
    assert lab.queue_depth() == 5
    assert {lab.task(task).state for task in tasks} == {"steps_in_process", "waiting_for_dependencies"}


def test_held_steps_are_released_as_the_queue_empties_and_all_of_them_run(lab: Lab) -> None:
    lab.window = 4
    tasks = lab.submit(lab.chain(), *({} for _ in range(25)))

    for _ in range(100):
        answer = lab.one.claim_answer()
        lab.one.finish(*(answer.get("claims") or ()))
        if answer.get("release"):
            assert release(lab).get("released", 0) <= lab.window
        if not answer.get("claims") and not answer.get("release"):
            break

    assert {lab.task(task).state for task in tasks} == {"complete"}


def test_the_backlog_is_offered_only_when_half_of_the_window_is_free(lab: Lab) -> None:
    lab.window = 4
    lab.submit(lab.chain(1), *({} for _ in range(10)))

    assert not lab.one.claim_answer(1).get("release")
    assert lab.one.claim_answer(1)["release"] == [lab.namespace_id]


def test_two_processes_release_a_held_step_once(lab: Lab) -> None:
    lab.window = 1
    first, second = lab.submit(lab.chain(1), {}, {})
    lab.window = 10

    with lab.transaction(lab.one):
        assert release(lab)["released"] == 1
        assert lab.two.call("backlog", lab.two.args()).get("released") == 0
    assert not lab.two.call("backlog", lab.two.args()).get("released")

    assert lab.queue_depth() == 2
    assert {**lab.states(first), **lab.states(second)} == {"s0": "enqueued"}


@pytest.mark.parametrize("waiting", [200, 5000])
def test_an_urgent_task_is_the_next_claim_whatever_waits(lab: Lab, waiting: int) -> None:
    """Up to the window the others were enqueued before the namespace was ordered, each with its message."""
    plan = lab.chain(1)
    lab.submit(plan, *({} for _ in range(waiting)))
    urgent = lab.submit_one(plan, priority=100)

    assert [claim["task"] for claim in lab.one.take(1)] == [urgent]


def test_urgent_steps_go_first_in_two_sessions(lab: Lab) -> None:
    plan = lab.chain(1)
    lab.submit(plan, *({} for _ in range(50)))
    urgent = lab.submit(plan, *({"priority": 10} for _ in range(6)))

    with lab.transaction(lab.one):
        first = lab.one.take(4)
        second = lab.two.take(4)

    assert {claim["task"] for claim in first} < set(urgent)
    assert {claim["task"] for claim in first + second} > set(urgent)
    assert len({claim["task"] for claim in first + second}) == 8


def test_a_finished_step_lets_a_more_urgent_task_pass(lab: Lab) -> None:
    """The next step of its task waits, and its worker is woken for the urgent one."""
    plan = lab.chain(3)
    task, claims = lab.running(plan)
    urgent = lab.submit_one(plan, priority=10)

    answer = lab.one.finish(claims["s0"], slots=5)

    assert not answer["claims"]
    assert answer["sent"] == {lab.namespace: 0}
    assert [claim["task"] for claim in lab.one.take(2)] == [urgent, task]


def test_a_task_goes_on_where_it_runs_beside_tasks_as_urgent(lab: Lab) -> None:
    plan = lab.chain(3)
    task = lab.submit_one(plan, priority=10)
    claims = lab.one.take(1)
    lab.submit(plan, *({"priority": priority} for priority in (10, 0, 0)))

    answer = lab.one.finish(*claims, slots=5)

    assert [claim["task"] for claim in answer["claims"]] == [task]


def test_started_tasks_are_finished_first_where_the_template_says_so(lab: Lab) -> None:
    plan = replace(lab.chain(2), release="finish_started_first")
    started = lab.submit_one(plan)
    (claim,) = lab.one.take(1)
    lab.one.set_time(seconds=60)
    lab.submit(plan, {}, {})

    lab.one.finish(claim, slots=0)

    assert [claim["task"] for claim in lab.one.take(1)] == [started]


def test_a_delay_in_a_template_makes_its_other_steps_no_older(lab: Lab) -> None:
    plan = lab.plan(Spec("a"), Spec("b", depends_on=("a",)), Spec("late"))
    steps = tuple(replace(step, delay_seconds=3600.0) if step.name == "late" else step for step in plan.steps)
    task, claims = lab.running(replace(plan, steps=steps))
    lab.window = 0
    lab.one.set_time(seconds=30)
    other = lab.submit_one(lab.chain(1))
    lab.one.set_time(seconds=60)
    lab.one.finish(claims["a"], slots=0)

    release(lab, window=1)

    assert (lab.states(other)["s0"], lab.states(task)["b"]) == ("enqueued", "pending")


def test_a_released_claim_waits_by_its_rank(lab: Lab) -> None:
    plan = lab.chain(1)
    urgent = lab.submit_one(plan, priority=10)
    lab.submit(plan, *({} for _ in range(3)))
    (claim,) = lab.one.take(1)

    lab.one.advance(change("release", claim))

    assert (lab.states(urgent), lab.queue_depth(), lab.task(urgent).held) == ({"s0": "pending"}, 0, 1)
    assert [claim["task"] for claim in lab.two.take(1)] == [urgent]


def test_a_claim_gets_no_more_than_its_free_slots(lab: Lab) -> None:
    plan = lab.chain(1)
    lab.submit(plan, *({"priority": 1} for _ in range(10)))

    assert len(lab.one.take(3)) == 3
    assert not lab.one.call("backlog", lab.one.args(slots=0)).get("claims")
    assert lab.queue_depth() == 0


def test_steps_that_the_caller_does_not_serve_are_left_to_others(lab: Lab) -> None:
    plan = lab.plan(Spec("a"), Spec("b"))
    lab.submit(plan, *({"priority": 1} for _ in range(3)))
    template = lab.one.value("select max(template_id) from tasker.templates")

    claims = lab.one.call("backlog", lab.one.args(slots=9, unserved=[f"{template}:0"]))["claims"]

    assert [claim["name"] for claim in claims] == ["b"] * 3


def test_locked_tasks_are_skipped_and_reported(lab: Lab) -> None:
    plan = lab.chain(1)
    urgent, usual = lab.submit_one(plan, priority=9), lab.submit_one(plan, priority=1)

    with lab.transaction(lab.two):
        lab.two.rows("select from tasker.tasks where task_uuid = %s for update", urgent)
        answer = lab.one.call("backlog", lab.one.args(slots=5))

    assert [claim["task"] for claim in answer["claims"]] == [usual]
    assert answer["passed_over"]


def test_a_step_that_another_claim_took_meanwhile_is_told(lab: Lab) -> None:
    """Else the worker sleeps while steps wait: what it looked at was gone when it had the lock."""
    first, second = lab.submit(lab.chain(1), {"priority": 1}, {"priority": 1})
    lab.two.rows("select pg_advisory_lock(7)")

    with lab.transaction(lab.one):
        lab.one.execute(  # of this transaction alone: between the look and the lock
            """create or replace function tasker.step_uuid(p_task uuid, p_seq int) returns uuid
            language plpgsql as $$ begin
              perform pg_advisory_xact_lock_shared(7);
              return (left(p_task::text, 30) || lpad(to_hex(p_seq), 6, '0'))::uuid;
            end $$"""
        )
        late = lab.later(lab.one.call, "backlog", lab.one.args(slots=1))
        lab.waits(late, lab.one, lab.two)
        assert [claim["task"] for claim in lab.two.take(1)] == [first]
        lab.two.rows("select pg_advisory_unlock(7)")
        answer = late.result(10)

    assert not answer.get("claims")
    assert answer["passed_over"]
    assert [claim["task"] for claim in lab.one.take(1)] == [second]


def test_an_urgent_task_passes_a_backlog_of_50_000(lab: Lab) -> None:
    lab.window = 500
    plan = lab.chain(1)
    assert len(lab.submit(plan, *({} for _ in range(50_000)))) == 50_000
    urgent = lab.submit_one(plan, priority=10)
    assert lab.task(urgent).held == 1

    assert work(lab, until=urgent) <= lab.window + 20
    assert lab.queue_depth() <= lab.window


def test_an_urgent_task_passes_running_tasks_that_keep_the_window_full(lab: Lab) -> None:
    """Each finished step makes the next one ready: these may not take every place that becomes free."""
    lab.window = 20
    lab.submit(lab.chain(40, name="long"), *({} for _ in range(lab.window)))
    urgent = lab.submit_one(lab.chain(1), priority=10)
    assert lab.task(urgent).held == 1

    assert work(lab, until=urgent, slots=5) <= lab.window + 5


def test_newcomers_do_not_jump_the_queue_of_held_tasks(lab: Lab) -> None:
    lab.window = 20
    plan = lab.chain(1)
    lab.submit(plan, *({} for _ in range(30)))
    lab.one.finish(*lab.one.claim(5))
    assert lab.queue_depth() == 15, "there is room, but ten tasks wait for it"

    newcomer = lab.submit_one(plan)

    assert lab.task(newcomer).held == 1


def test_a_retry_that_must_be_held_keeps_the_age_of_its_task(lab: Lab) -> None:
    plan = lab.chain(1)
    _, claims = lab.running(plan)
    lab.one.advance(retry(claims["s0"], delay_ms=0))
    lab.window = 0
    lab.one.set_time(seconds=60)
    younger = lab.submit_one(plan)
    lab.one.set_time(seconds=120)
    lab.one.call("due", lab.one.args())

    assert release(lab, window=1)["released"] == 1

    assert lab.states(claims["s0"]["task"]) == {"s0": "enqueued"}
    assert lab.states(younger) == {"s0": "pending"}


def test_waiting_makes_up_for_priority(lab: Lab) -> None:
    """A point of priority is worth `ageing_s` seconds: the old task wins against one that is a bit more urgent."""
    lab.window = 0
    plan = lab.chain(1)
    old, slightly, very = lab.submit_one(plan), "", ""
    lab.one.set_time(seconds=3 * 600)
    slightly, very = lab.submit_one(plan, priority=2), lab.submit_one(plan, priority=5)

    assert [lab.one.take(1)[0]["task"] for _ in range(3)] == [very, old, slightly]


def test_a_fan_out_of_thousands_does_not_starve_another_task(lab: Lab) -> None:
    """Its steps are ranked apart, so what becomes ready a moment later comes among the first of them."""
    lab.window = 100
    wide = lab.plan(Spec("root"), *(Spec(f"c{i:04}", depends_on=("root",)) for i in range(3000)), name="wide")
    lab.submit_one(wide)
    lab.one.finish(*lab.one.claim())
    lab.one.set_time(seconds=1)
    small = lab.submit_one(lab.chain(1))
    assert lab.task(small).held == 1

    assert work(lab, until=small) <= 2 * lab.window + 50


@pytest.mark.parametrize("slots", [1, 3])
def test_within_a_write_the_urgent_task_s_steps_are_handed_over_first(lab: Lab, slots: int) -> None:
    plan = lab.chain()
    tasks = lab.submit(plan, *({"priority": priority} for priority in (0, 9, 5, 1)))
    priorities = {task: lab.task(task).priority for task in tasks}

    answer = lab.one.finish(*lab.one.take(), slots=slots)

    assert [priorities[claim["task"]] for claim in answer["claims"]] == [9, 5, 1][:slots]


def test_a_namespace_s_backlog_takes_no_room_from_another(lab: Lab) -> None:
    lab.window = 3
    lab.submit(lab.chain(1), *({} for _ in range(10)))
    other = Lab(lab.url, window=3)
    try:
        task = other.submit_one(other.chain(1))
        assert other.states(task) == {"s0": "enqueued"}
    finally:
        other.close()


def test_the_slots_of_an_ordered_namespace_are_not_taken_by_the_backlog_of_a_queue(lab: Lab) -> None:
    """The steps beyond the window are more urgent, but their namespace has a queue."""
    lab.window = 2
    lab.submit(lab.chain(1), *({} for _ in range(6)))
    lab.lose_hints()
    other = Lab(lab.url)
    try:
        bulk = other.submit_one(other.chain(1), priority=-100)
        both = [lab.namespace_id, other.namespace_id]
        answer = lab.one.call("backlog", lab.one.args(slots=1, namespace_ids=both, window=4))

        assert [claim["task"] for claim in answer["claims"]] == [bulk]
        assert (answer["released"], answer["sent"]) == (3, {lab.namespace: 2})
    finally:
        other.close()


def test_a_step_that_still_waits_for_a_parent_is_not_released(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(2))
    child = lab.steps(task)["s1"]

    answer = lab.one.advance(operator("unhold", child), slots=5)

    assert verdict(answer, {"step": str(child.workflow_step_uuid)}) == "stale"
    assert lab.states(task) == {"s0": "in_progress", "s1": "pending"}
    assert lab.queue_depth() == 0
    lab.one.finish(claims["s0"])


def test_a_claim_of_an_ordered_namespace_says_how_long_its_step_was_ready(lab: Lab) -> None:
    lab.one.set_time(0)
    lab.submit(lab.chain(2), {"priority": 10}, {"priority": -10})
    lab.one.set_time(90)

    first, second = lab.one.take(2)

    assert all(90_000 <= claim["waited_ms"] < 1_000_000 for claim in (first, second))
    (handed_off,) = lab.one.finish(first, slots=1)["claims"]
    assert "waited_ms" not in handed_off, "it did not wait"
