"""Retries start when they are due and not before, once, whoever promotes them."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engine_fixture import Lab, Session, retry, verdict
from tests.support.random_plans import Spec


def promote(session: Session, **more: Any) -> dict[str, Any]:
    return session.call("due", session.args(**more))


def test_a_retry_is_not_promoted_before_it_is_due(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    lab.one.set_time(seconds=0)
    lab.one.advance(retry(claims["s0"], delay_ms=10_000))

    lab.two.set_time(seconds=9)
    early = promote(lab.two)
    assert not early.get("promoted")
    assert 0 < early["next_due_ms"] <= 10_000
    assert lab.states(task) == {"s0": "waiting_for_retry"}
    lab.two.set_time(seconds=11)
    assert promote(lab.two)["promoted"] == 1
    assert lab.states(task) == {"s0": "enqueued"}


def test_nothing_waits_means_no_next_time(lab: Lab) -> None:
    assert "next_due_ms" not in promote(lab.one)


def test_two_promoters_promote_a_step_once(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(retry(claims["s0"], delay_ms=0))

    with lab.transaction(lab.one):
        assert promote(lab.one)["promoted"] == 1
        assert not promote(lab.two).get("promoted"), "it takes what it can lock"
    assert not promote(lab.two).get("promoted")

    assert lab.step_paths(task, "s0")[-1] == "waiting_for_retry>pending>enqueued"
    assert lab.queue_depth() == 1


def test_a_promoter_that_looked_too_early_does_not_shorten_the_next_delay(lab: Lab) -> None:
    """It read the first failure; meanwhile the step ran again and failed again, and is due much later."""
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(retry(claims["s0"], delay_ms=0))
    seen = lab.steps(task)["s0"]
    promote(lab.two)
    (second,) = lab.two.claim()
    lab.two.advance(retry(second, delay_ms=60_000))

    late = lab.one.advance({"s": second["step"], "t": task, "kind": "promote", "k": seen.claim_token}, wait=False)

    assert verdict(late, second) == "stale"
    assert lab.states(task) == {"s0": "waiting_for_retry"}


def test_a_due_step_is_handed_to_a_promoter_that_has_room(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(retry(claims["s0"], delay_ms=0))

    (claim,) = promote(lab.two, slots=1)["claims"]

    assert (claim["attempt"], claim["token"]) == (2, claims["s0"]["token"] + 1)
    assert lab.step_paths(task, "s0")[-1] == "waiting_for_retry>pending>enqueued>in_progress"
    lab.two.finish(claim)
    assert lab.task(task).state == "complete"


def test_the_longest_overdue_goes_first(lab: Lab) -> None:
    _, claims = lab.running(lab.plan(Spec("first"), Spec("second"), Spec("third")))
    lab.one.advance(*(retry(claims[name], delay_ms=ms) for name, ms in (("third", 30), ("first", 10), ("second", 20))))
    lab.one.set_time(seconds=60)

    started = [promote(lab.one, slots=1, limit=1)["claims"][0]["name"] for _ in range(3)]

    assert started == ["first", "second", "third"]


@pytest.mark.parametrize("room", [0, 1])
def test_a_due_step_is_held_when_the_window_is_full(lab: Lab, room: int) -> None:
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(retry(claims["s0"], delay_ms=0))

    promote(lab.one, window=room)

    assert lab.states(task) == {"s0": "enqueued" if room else "pending"}
    assert lab.task(task).held == 1 - room


def fail_all(lab: Lab, count: int) -> str:
    """A task of so many roots that failed and are due."""
    task, claims = lab.running(lab.plan(*(Spec(f"s{n}") for n in range(count)), name=f"fan{count}"))
    lab.one.advance(*(retry(claim, delay_ms=0) for claim in claims.values()))
    return task


def test_a_locked_task_with_more_due_steps_than_are_taken_at_once_does_not_starve_the_others(lab: Lab) -> None:
    kept = fail_all(lab, 6)
    other = fail_all(lab, 2)

    with lab.transaction(lab.two):
        lab.two.execute("select from tasker.tasks where task_uuid = %s for update", kept)
        answer = promote(lab.one, limit=5)

    assert (answer["promoted"], answer["passed_over"]) == (2, True)
    assert set(lab.states(other).values()) == {"enqueued"}
    assert set(lab.states(kept).values()) == {"waiting_for_retry"}
    assert [promote(lab.one, limit=5).get("promoted") for _ in range(3)] == [5, 1, None]


def test_a_promoter_says_whether_more_is_due_now_later_or_not_at_all(lab: Lab) -> None:
    fail_all(lab, 3)
    later, claims = lab.running(lab.chain(1))
    lab.one.set_time(seconds=0)
    lab.one.advance(retry(claims["s0"], delay_ms=90_000))

    first, second = promote(lab.one, limit=2), promote(lab.one, limit=2)

    assert (first["promoted"], first["next_due_ms"]) == (2, 0)
    assert second["promoted"] == 1
    assert 80_000 < second["next_due_ms"] <= 90_000, "milliseconds"
    assert "passed_over" not in second
    lab.one.call("cancel", {"task": later, "reason": "", "actor": ""})
    assert "next_due_ms" not in promote(lab.one)


def test_a_timer_that_was_left_of_a_step_that_waits_no_more_is_removed(lab: Lab) -> None:
    done = lab.submit_one(lab.plan(*(Spec(f"s{n}") for n in range(4))))
    lab.one.run_all()
    lab.observer.execute(
        "insert into tasker.timers select workflow_step_uuid, 'r', '-infinity', task_uuid, claim_token"
        " from tasker.workflow_steps where task_uuid = %s",
        done,
    )
    fail_all(lab, 1)

    answers = [promote(lab.one, limit=2) for _ in range(3)]

    assert [answer["promoted"] for answer in answers] == [0, 0, 1]
    assert "passed_over" not in answers[-1]
    assert not lab.observer.rows("select from tasker.timers")


def test_a_step_that_failed_again_between_the_look_and_the_lock_is_not_promoted_early(lab: Lab) -> None:
    """What was read is older than the lock: meanwhile the step ran, failed, and is due much later."""
    task = fail_all(lab, 1)
    lab.observer.execute("alter function tasker.advance_v1(jsonb) rename to advance_afterwards")
    lab.observer.execute(
        """create function tasker.advance_v1(p_args jsonb) returns jsonb language plpgsql as $$ begin
             update tasker.workflow_steps set claim_token = claim_token + 1, due_at = due_at + interval '1 hour';
             update tasker.timers set token = token + 1, due_at = due_at + interval '1 hour';
             return tasker.advance_afterwards(p_args);
           end $$"""
    )

    assert not promote(lab.one).get("promoted")

    assert lab.states(task) == {"s0": "waiting_for_retry"}


def keep(session: Session, **more: Any) -> dict[str, Any]:
    """As a process that takes part in keeping the time."""
    return promote(session, turn_ms=4000, late_ms=250, **more)


def test_one_process_keeps_the_time_and_the_others_move_what_is_late(lab: Lab) -> None:
    _, claims = lab.running(lab.plan(Spec("first"), Spec("second")))
    present = lab.observer.value("select now()")
    for session in (lab.one, lab.two):
        session.set_time(0, present)
    lab.one.advance(retry(claims["first"], delay_ms=3000), retry(claims["second"], delay_ms=3500))

    assert [keep(session)["keeper"] for session in (lab.one, lab.two, lab.one)] == [True, False, True]
    lab.two.set_time(3.1, present)
    early = keep(lab.two)
    assert not early.get("promoted"), "the timekeeper does it"
    assert "passed_over" not in early
    assert "next_due_ms" not in early
    lab.two.set_time(3.4, present)
    assert keep(lab.two)["promoted"] == 1, "late by more than 250 ms"
    lab.one.set_time(3.6, present)
    assert keep(lab.one)["promoted"] == 1, "on time"


def test_a_timekeeper_that_calls_no_more_is_replaced_and_one_that_stops_at_once(lab: Lab) -> None:
    for session in (lab.one, lab.two):
        session.set_time(0)
        session.start_worker()
    assert keep(lab.one)["keeper"]
    lab.two.set_time(4.1)
    lab.one.set_time(4.1)

    assert keep(lab.two)["keeper"]
    assert not keep(lab.one)["keeper"], "two processes never keep it at once"
    lab.observer.execute("listen tasker_timers")
    lab.two.core("worker", {"action": "stop", "worker": lab.two.worker})
    (heard,) = lab.observer.connection.notifies(timeout=5, stop_after=1)
    assert heard.payload == ""
    assert keep(lab.one)["keeper"]


def test_a_turn_of_the_timekeeper_from_before_the_clock_was_set_back_is_over(lab: Lab) -> None:
    lab.one.set_time(3600)
    assert keep(lab.one)["keeper"]

    assert keep(lab.two)["keeper"]


def test_a_timekeeper_that_calls_often_writes_its_turn_seldom(lab: Lab) -> None:
    lab.one.set_time(0)
    written = [lab.observer.value("select xmin::text from tasker.turns") for _ in range(5) if keep(lab.one)["keeper"]]

    assert len(set(written)) == 1
