"""Handlers that wait for an event: suspended by their worker, called again in the same attempt, and never twice."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.engine.protocol.test_delays import HOUR, WHY, due
from tests.integration.engine.protocol.test_events_for_waits import PAID, match, outcomes, pairs, send
from tests.integration.engine.protocol.test_limits import limited, permits
from tests.integration.engine.protocol.test_waits import NOON, timers
from tests.support.engine_fixture import Item, Lab, change, ok, operator, retry, verdict


def suspend(claim: Item, seconds: float | None = HOUR, on_timeout: str = "fail", state: Any = None) -> Item:
    stored = {"event": None, "timed_out": False, "state": state or {"session": "S"}}
    wait = {"event": PAID, "key": "7", "on_timeout": on_timeout, "schema": None}
    return change("suspend", claim, r=stored, m=wait, d=None if seconds is None else seconds * 1000)


def suspended(lab: Lab, **options: Any) -> tuple[str, Item]:
    """A task whose first step waits for its event, before `s1`; and the claim under which its handler ran."""
    lab.one.set_time(0, NOON)
    lab.two.set_time(0, NOON)
    task, claims = lab.running(lab.chain(2))
    answer = lab.one.advance(suspend(claims["s0"], **options))
    assert answer["begins_in_ms"] == 0, "its worker looks for the event at once"
    return task, claims["s0"]


def again(lab: Lab) -> Item:
    """What the next claim of the step gets of its earlier calls."""
    return lab.observer.value("select checkpoint->'again' from tasker.step_checkpoints")


def test_suspended_handler_has_no_worker_and_keeps_its_attempt(lab: Lab) -> None:
    task, claim = suspended(lab)

    step, row = lab.steps(task)["s0"], lab.task(task)
    assert (step.state, step.worker_uuid, step.attempts, step.started_at) == ("in_progress", None, 1, None)
    assert (row.state, row.active, row.suspended, row.waits) == ("steps_in_process", 1, 1, True)
    assert (lab.queue_depth(), lab.one.claim(), timers(lab)) == (0, [], [("w", HOUR)])
    assert verdict(lab.one.advance(ok(claim)), claim) == "stale", "what still runs under its claim is refused"
    assert verdict(lab.one.advance(suspend(claim)), claim) == "stale", "the write is repeated after a lost answer"


def test_event_calls_the_handler_again_in_the_same_attempt(lab: Lab) -> None:
    task, _ = suspended(lab)
    send(lab.one)

    assert match(lab.one) == 1

    assert (lab.states(task)["s0"], lab.task(task).suspended, timers(lab)) == ("enqueued", 0, [])
    (claim,) = lab.one.claim()
    assert claim["attempt"] == 1
    stored = claim["checkpoint"]["again"]
    assert (stored["state"], stored["event"]["payload"]) == ({"session": "S"}, {"amount": 5})
    assert lab.step_paths(task, "s0")[-2] == "in_progress>waiting_for_retry>pending>enqueued"
    assert outcomes(lab) == ["event"]
    lab.one.finish(claim)
    lab.one.run_all()
    assert lab.task(task).state == "complete"


def test_event_from_before_the_wait_is_taken(lab: Lab) -> None:
    lab.one.set_time(0, NOON)
    _, claims = lab.running(lab.chain(1))
    send(lab.one)
    match(lab.one)

    lab.one.advance(suspend(claims["s0"]))

    assert match(lab.one) == 1
    assert again(lab)["event"]["payload"] == {"amount": 5}


def test_handler_that_waits_again_gets_each_event_once_in_their_order(lab: Lab) -> None:
    task, _ = suspended(lab)
    for n in (1, 2):
        send(lab.one, payload={"n": n})
    match(lab.one)
    seen = []
    for _ in range(2):
        (claim,) = lab.one.claim()
        seen.append(claim["checkpoint"]["again"]["event"]["payload"]["n"])
        lab.one.advance(suspend(claim))
        assert again(lab)["event"] is None
        match(lab.one)

    assert seen == [1, 2]
    assert lab.states(task)["s0"] == "in_progress", "no event is left for the third wait"


def test_no_event_in_time_fails_the_step(lab: Lab) -> None:
    task, _ = suspended(lab)
    lab.one.set_time(HOUR + 1, NOON)

    due(lab.one)

    error = lab.observer.value("select error from tasker.step_failures")
    assert (lab.task(task).state, error["error_type"], outcomes(lab)) == ("error", "wait_timed_out", ["timeout"])
    assert error["message"] == "no event payment.settled with the key 7 came until 2026-01-01 13:00:00Z"


def test_timeout_that_continues_hands_the_step_to_who_watches_the_timers(lab: Lab) -> None:
    task, _ = suspended(lab, on_timeout="continue")
    lab.one.set_time(HOUR + 1, NOON)

    (claim,) = due(lab.one, slots=1)["claims"]

    stored = claim["checkpoint"]["again"]
    assert (claim["name"], claim["attempt"], stored["timed_out"], stored["event"]) == ("s0", 1, True, None)
    lab.one.advance(suspend(claim))
    assert again(lab)["timed_out"] is False, "a new wait has not timed out"
    assert lab.states(task)["s0"] == "in_progress"


@pytest.mark.parametrize("first", ["event", "timeout"])
def test_concurrent_event_and_timeout_resume_the_handler_once(lab: Lab, first: str) -> None:
    task, _ = suspended(lab, on_timeout="continue")
    send(lab.one, exclusive=True)
    found = pairs(lab.one)
    for session in (lab.one, lab.two):
        session.set_time(HOUR + 1, NOON)

    if first == "event":
        match(lab.one, found)
        due(lab.two)
    else:
        due(lab.two)
        assert match(lab.one, found) == 0

    taken = lab.observer.value("select taken_by is not null from tasker.incoming_events")
    assert (taken, outcomes(lab)) == ((True, ["event"]) if first == "event" else (False, ["timeout"]))
    assert bool(again(lab)["event"]) is (first == "event")
    assert lab.states(task)["s0"] == "enqueued"


def test_retry_after_the_event_reads_it_again(lab: Lab) -> None:
    suspended(lab)
    send(lab.one)
    match(lab.one)
    (claim,) = lab.one.claim()

    lab.one.advance(retry(claim, 0))
    due(lab.one)

    (claim,) = lab.one.claim()
    assert (claim["attempt"], claim["checkpoint"]["again"]["event"]["payload"]) == (2, {"amount": 5})


def test_reset_reads_the_state_and_may_wait_again(lab: Lab) -> None:
    task, _ = suspended(lab)
    lab.one.set_time(HOUR + 1, NOON)
    due(lab.one)
    lab.one.advance(operator("reset", lab.steps(task)["s0"]))

    (claim,) = lab.one.claim()

    assert claim["checkpoint"]["again"] == {"event": None, "timed_out": False, "state": {"session": "S"}}
    lab.one.advance(suspend(claim))
    assert lab.states(task)["s0"] == "in_progress"


@pytest.mark.parametrize(("kind", "state"), [("resolve", "resolved_manually"), ("complete", "complete")])
def test_operator_ends_the_wait_of_a_handler(lab: Lab, kind: str, state: str) -> None:
    task, _ = suspended(lab)

    lab.one.advance(operator(kind, lab.steps(task)["s0"], r={}))

    assert lab.states(task) == {"s0": state, "s1": "enqueued"}
    assert (outcomes(lab), timers(lab)) == (["operator"], [])


def test_cancelled_handler_waits_no_more(lab: Lab) -> None:
    task, _ = suspended(lab)
    send(lab.one, exclusive=True)
    found = pairs(lab.one)

    answer = lab.two.core("cancel", {"task": task, **WHY})

    assert "running" not in answer, "no worker has to stop"
    assert match(lab.one, found) == 0
    assert (outcomes(lab), timers(lab), lab.task(task).suspended) == (["cancelled"], [], 0)
    assert lab.observer.value("select taken_by from tasker.incoming_events") is None


def test_deadline_ends_the_wait_of_a_handler(lab: Lab) -> None:
    lab.one.set_time(0, NOON)
    task = lab.submit_one(lab.chain(1), deadline_ms=60_000)
    (claim,) = lab.one.claim()
    lab.one.advance(suspend(claim))
    lab.one.set_time(61, NOON)

    due(lab.one)

    assert (lab.states(task), lab.task(task).state) == ({"s0": "error"}, "error")
    assert (outcomes(lab), timers(lab)) == (["failed"], [])


def test_resumed_step_of_a_paused_template_is_held(lab: Lab) -> None:
    task, _ = suspended(lab)
    lab.one.call("pause", {"namespace": lab.namespace, **WHY})
    send(lab.one)

    assert match(lab.one) == 1

    assert (lab.states(task)["s0"], lab.task(task).held, lab.one.claim()) == ("pending", 1, [])


def test_suspended_step_gives_its_permit_to_the_next_and_waits_for_one(lab: Lab) -> None:
    lab.one.set_time(0, NOON)
    plan = limited(lab)
    first, second = lab.submit(plan, *({"context": {"customer": "x"}} for _ in range(2)))
    due(lab.one)
    (claim,) = lab.one.claim()

    lab.one.advance(suspend(claim))

    assert (lab.states(second)["a"], permits(lab)) == ("enqueued", [("x", 1)])
    send(lab.one)
    match(lab.one)
    assert lab.states(first)["a"] == "pending", "the permit is the other's"
    (other,) = lab.one.claim()
    lab.one.advance(ok(other))
    assert lab.states(first)["a"] == "enqueued"


def test_checkpoint_keeps_what_the_handler_waited_for(lab: Lab) -> None:
    suspended(lab)
    send(lab.one)
    match(lab.one)
    (claim,) = lab.one.claim()
    position = {"cursor": 3, "items_processed": 3, "timeout_ms": 1000, "grace_ms": 1000}

    for _ in range(2):
        fence = {"worker": lab.one.args()["worker"], "step": claim["step"], "token": claim["token"]}
        saved = lab.one.core("checkpoint", {**fence, **position})["checkpoint"]

    assert (saved["cursor"], len(saved["history"])) == (3, 2)
    assert saved["again"]["event"]["payload"] == {"amount": 5}


def test_snoozed_handler_stores_its_state(lab: Lab) -> None:
    _, claims = lab.running(lab.chain(1))

    lab.one.advance(change("snooze", claims["s0"], d=0, sn=3, n={}, r={"state": {"job": 1}}), snoozes=True)
    due(lab.one)

    (claim,) = lab.one.claim()
    assert claim["checkpoint"]["again"] == {"state": {"job": 1}}


def test_sweeps_leave_a_suspended_handler_alone_and_call_one_that_lost_its_wait(lab: Lab) -> None:
    task, _ = suspended(lab)
    lab.one.set_time(HOUR / 2, NOON)
    everything = {"limit": 500, "steps": 2000, "idle_grace_ms": 0, "begin": True}
    nothing = {"orphans", "forgotten", "unfinished", "unwaiting", "untimed"}
    assert not set(lab.one.core("find_waiting", everything)) & nothing

    lab.observer.execute("delete from tasker.timers")
    (untimed,) = lab.one.core("find_waiting", everything)["untimed"]
    assert lab.one.core("mend_waits", {"steps": [untimed["s"]]}) == {"mended": 1}
    lab.observer.execute("delete from tasker.step_waits")
    (unwaiting,) = lab.one.core("find_waiting", everything)["unwaiting"]
    lab.one.advance(change("retry", {"step": unwaiting["s"], "task": task, "token": unwaiting["k"]}, d=0, e={}))
    due(lab.one)

    (claim,) = lab.one.claim()
    assert claim["checkpoint"]["again"]["state"] == {"session": "S"}


def test_task_with_a_suspended_handler_is_not_stale(lab: Lab) -> None:
    suspended(lab, seconds=30 * 24 * HOUR)
    lab.one.set_time(29 * 24 * HOUR, NOON)

    stale = lab.one.core("stale", {"limit": 100})

    assert stale == {"searched": True} or not stale.get("stale"), stale
