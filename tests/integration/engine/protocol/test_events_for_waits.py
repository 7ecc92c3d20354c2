"""Events and the steps that wait for them: in both orders, at one moment, with a death in between, and exactly once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.engine.protocol.test_delays import HOUR, WHY, due
from tests.integration.engine.protocol.test_waits import NOON, timers
from tests.support.engine_fixture import Answer, Item, Lab, Session, ok, operator
from tests.support.random_plans import Spec

PAID = "payment.settled"


def awaited(**more: Any) -> Item:
    """The wait of a plan for one event; its key is that of the task's input."""
    one = {"event": PAID, "key": {"input": ["order"]}, "schema": None}
    wait = {"on": "event", "for_seconds": HOUR, "events": [one], "on_timeout": "fail", "take": "first", "count": 1}
    return {**wait, "since": "task", **more}


def waiting(lab: Lab, order: str = "7", wait: Item | None = None) -> str:
    """A task whose step `b` waits for the event of its order, before `c`; it has not looked for it."""
    lab.one.set_time(0, NOON)
    plan = lab.plan(Spec("b", wait=wait or awaited()), Spec("c", depends_on=("b",)), name="paid")
    task = lab.submit_one(plan, context={"order": order})
    assert due(lab.one).get("begins_in_ms") == 0, "whoever suspends it looks at once"
    assert lab.states(task)["b"] == "in_progress"
    return task


def send(session: Session, key: str = "7", payload: Any = None, **more: Any) -> Answer:
    event = {"namespace": session.lab.namespace, "name": PAID, "key": key, "payload": payload or {"amount": 5}}
    return session.core("send_event", {**event, "by": "test", "keep_ms": 7 * 24 * HOUR * 1000, **more})


def pairs(session: Session, **more: Any) -> Answer:
    return session.core("unmatched", {"limit": 200, "events": 200, **more})


def match(session: Session, found: Answer | None = None) -> int:
    """What a process does after its commit (`EventMatcher`); how many waits took an event."""
    found = pairs(session) if found is None else found
    matched = 0
    for pair in found["pairs"]:
        names = ("event", "step", "token", "nth", "task")
        matched += session.call("match_event", session.args(**{name: pair[name] for name in names}))["matched"]
    session.core("looked", {"events": found["events"], "waits": found["waits"]})
    return matched


def refuse(session: Session, pair: Item, problem: str) -> None:
    names = ("event", "step", "token", "nth", "task")
    session.core("refuse_event", {**{name: pair[name] for name in names}, "problem": problem})


def result(lab: Lab, name: str = "b") -> Any:
    return lab.observer.value("select result from tasker.step_results where name = %s", name)


def outcomes(lab: Lab) -> list[str | None]:
    return [row.outcome for row in lab.observer.rows("select outcome from tasker.step_waits order by token, nth")]


def test_an_event_ends_the_wait_of_its_key_alone(lab: Lab) -> None:
    task, other = waiting(lab), waiting(lab, "8")
    assert match(lab.one) == 0
    send(lab.one)

    assert match(lab.one) == 1

    assert lab.states(other)["b"] == "in_progress"
    assert lab.states(task) == {"b": "complete", "c": "enqueued"}
    assert {**result(lab), "event_uuid": "", "sent_at": ""} == {
        "event": PAID, "key": "7", "payload": {"amount": 5}, "event_uuid": "", "sent_at": "",
    }  # fmt: skip
    assert timers(lab) == [("w", HOUR)], "that of the other one"


def test_an_event_from_before_the_task_does_not_count(lab: Lab) -> None:
    lab.submit_one(lab.chain(1))
    lab.one.set_time(-60, NOON)
    send(lab.one)
    match(lab.one)

    task = waiting(lab)

    assert match(lab.one) == 0
    assert lab.states(task)["b"] == "in_progress"


def test_unmatched_event_counts_for_a_task_created_after_it(lab: Lab) -> None:
    lab.submit_one(lab.chain(1))
    send(lab.one)

    task = waiting(lab)

    assert match(lab.one) == 1
    assert lab.states(task)["b"] == "complete"


def test_a_wait_for_any_event_takes_one_from_before_its_task(lab: Lab) -> None:
    lab.submit_one(lab.chain(1))
    lab.one.set_time(-60, NOON)
    send(lab.one)
    match(lab.one)

    task = waiting(lab, wait=awaited(since="any"))

    assert match(lab.one) == 1
    assert lab.states(task)["b"] == "complete"


@pytest.mark.parametrize("last", ["event", "wait"])
def test_later_commit_of_event_and_wait_matches_both(lab: Lab, last: str) -> None:
    """Neither sees the other while both are open, and who commits first finds nothing."""
    lab.one.set_time(0, NOON)
    lab.two.set_time(0, NOON)
    plan = lab.plan(Spec("b", wait=awaited()), name="paid")
    task = lab.submit_one(plan, context={"order": "7"})
    waiter, sender = (lab.one, lab.two)
    outer, inner = (sender, waiter) if last == "event" else (waiter, sender)

    def act(session: Session) -> None:
        if session is sender:
            send(session)
        else:
            due(session)

    with lab.transaction(outer):
        act(outer)
        with lab.transaction(inner):
            act(inner)
        assert match(inner) == 0
    assert match(outer) == 1

    assert lab.states(task)["b"] == "complete"


@pytest.mark.parametrize("dies", ["sender", "both", "in between"])
def test_timekeeper_matches_after_a_crash_between_commit_and_match(lab: Lab, dies: str) -> None:
    task = waiting(lab)
    if dies == "sender":
        match(lab.one)
    send(lab.one)
    lab.two.set_time(0, NOON)
    if dies == "in between":
        pairs(lab.one)  # read, and died before the write

    assert due(lab.two)["unmatched"]
    assert match(lab.two) == 1

    assert lab.states(task)["b"] == "complete"
    assert "unmatched" not in due(lab.two)


def test_match_repeated_after_a_crash_gives_an_event_once(lab: Lab) -> None:
    task = waiting(lab)
    send(lab.one)
    found = pairs(lab.one)
    names = ("event", "step", "token", "nth", "task")
    (pair,) = found["pairs"]
    lab.one.call("match_event", lab.one.args(**{name: pair[name] for name in names}))  # and died: not marked
    lab.two.set_time(0, NOON)

    assert match(lab.two, found) == 0
    assert match(lab.two) == 0

    assert len(lab.step_paths(task, "b")) == 2
    assert "unmatched" not in due(lab.two)


@pytest.mark.parametrize("first", ["event", "timeout"])
def test_concurrent_event_and_timeout_end_the_wait_once(lab: Lab, first: str) -> None:
    task = waiting(lab)
    send(lab.one, exclusive=True)
    found = pairs(lab.one)
    for session in (lab.one, lab.two):
        session.set_time(HOUR + 1, NOON)

    with lab.transaction(lab.one):
        if first == "event":
            match(lab.one, found)
            assert due(lab.two)["passed_over"]
        else:
            due(lab.one)
            (pair,) = found["pairs"]
            names = ("event", "step", "token", "nth", "task")
            call = lab.later(lab.two.call, "match_event", lab.two.args(**{name: pair[name] for name in names}))
            lab.waits(call, lab.two, on=lab.one)
    due(lab.two)

    taken = lab.observer.value("select taken_by is not null from tasker.incoming_events")
    if first == "timeout":
        assert call.result()["matched"] is False
    assert (lab.states(task)["b"], taken, outcomes(lab)) == (
        ("complete", True, ["event"]) if first == "event" else ("error", False, ["timeout"])
    )


def test_exclusive_event_goes_to_one_of_two_concurrent_waits(lab: Lab) -> None:
    tasks = waiting(lab), waiting(lab)
    send(lab.one, exclusive=True)
    lab.two.set_time(0, NOON)
    first, second = pairs(lab.one)["pairs"]
    names = ("event", "step", "token", "nth", "task")
    with lab.transaction(lab.one):
        assert lab.one.call("match_event", lab.one.args(**{name: first[name] for name in names}))["matched"]
        call = lab.later(lab.two.call, "match_event", lab.two.args(**{name: second[name] for name in names}))
        lab.waits(call, lab.two, on=lab.one)

    assert call.result()["matched"] is False
    assert sorted(lab.states(task)["b"] for task in tasks) == ["complete", "in_progress"]


def test_an_event_that_a_cancelled_step_refuses_stays_for_others(lab: Lab) -> None:
    task = waiting(lab)
    send(lab.one, exclusive=True)
    found = pairs(lab.one)
    lab.two.core("cancel", {"task": task, **WHY})
    other = waiting(lab)

    assert match(lab.one, found) == 0
    assert match(lab.one) == 1

    assert lab.states(other)["b"] == "complete"


def test_an_event_is_for_every_wait_of_its_key_and_for_later_ones(lab: Lab) -> None:
    tasks = [waiting(lab), waiting(lab)]
    send(lab.one)
    assert match(lab.one) == 2
    late = awaited(since="any")
    tasks.append(waiting(lab, wait=late))
    assert match(lab.one) == 1
    lab.one.set_time(8 * 24 * HOUR, NOON)
    assert lab.one.core("prune_incoming_events", {"limit": 10}) == {"deleted": 1}

    assert [lab.states(task)["b"] for task in tasks] == ["complete"] * 3


def test_second_event_of_one_dedupe_id_is_dropped_also_concurrently(lab: Lab) -> None:
    lab.submit_one(lab.chain(1))
    lab.two.set_time(0, NOON)
    with lab.transaction(lab.one):
        first = send(lab.one, dedupe_id="x")
        call = lab.later(send, lab.two, dedupe_id="x")
        lab.waits(call, lab.two, on=lab.one)

    assert (first["duplicate"], call.result()["duplicate"], call.result()["event"]) == (False, True, first["event"])
    assert send(lab.two, namespace="nowhere") == {"missing": True}


def test_a_rolled_back_event_was_never_sent(lab: Lab) -> None:
    task = waiting(lab)
    with lab.one.connection.transaction(force_rollback=True):
        send(lab.one)

    assert match(lab.one) == 0
    assert lab.states(task)["b"] == "in_progress"


def test_no_event_in_time_fails_and_says_which(lab: Lab) -> None:
    task = waiting(lab)
    send(lab.one, payload={"amount": "many"})
    (pair,) = pairs(lab.one)["pairs"]
    refuse(lab.one, pair, "$.amount: is no integer")
    assert pairs(lab.one)["pairs"] == [], "a refused payload is not compared again"
    match(lab.one)
    lab.one.set_time(HOUR + 1, NOON)

    due(lab.one)

    error = lab.observer.value("select error from tasker.step_failures")
    assert (lab.task(task).state, error["error_type"], outcomes(lab)) == ("error", "wait_timed_out", ["timeout"])
    assert error["message"] == (
        "no event payment.settled with the key 7 came until 2026-01-01 13:00:00Z; "
        "the payloads of 1 did not fit, the last because $.amount: is no integer"
    )


def test_a_wait_without_a_key_in_the_data_fails_and_says_where(lab: Lab) -> None:
    lab.one.set_time(0, NOON)
    task = lab.submit_one(lab.plan(Spec("b", wait=awaited()), name="paid"), context={})
    due(lab.one)

    due(lab.one)

    error = lab.observer.value("select error from tasker.step_failures")
    assert (lab.task(task).state, error["error_type"]) == ("error", "event_key_missing")
    assert error["message"] == "key: expected a value at input.order"


def test_a_wait_without_a_key_in_the_data_takes_no_event_without_a_key(lab: Lab) -> None:
    lab.one.set_time(0, NOON)
    task = lab.submit_one(lab.plan(Spec("b", wait=awaited()), name="paid"), context={})
    due(lab.one)
    send(lab.one, key="")

    assert match(lab.one) == 0

    due(lab.one)
    assert lab.states(task)["b"] == "error"


def test_the_first_of_several_events_ends_the_wait(lab: Lab) -> None:
    other = {"event": "payment.refused", "key": None, "schema": None}
    task = waiting(lab, wait=awaited(events=[other, awaited()["events"][0]], for_seconds=None))
    assert timers(lab) == []
    send(lab.one)

    assert match(lab.one) == 1

    assert (result(lab)["event"], outcomes(lab)) == (PAID, ["event", "event"])
    assert lab.states(task)["b"] == "complete"


def test_a_wait_collects_as_many_events_as_it_counts(lab: Lab) -> None:
    task = waiting(lab, wait=awaited(count=2))
    send(lab.one, payload={"n": 1})
    assert match(lab.one) == 1
    assert match(lab.one) == 0
    assert lab.states(task)["b"] == "in_progress"
    lab.one.set_time(8 * 24 * HOUR, NOON)
    assert lab.one.core("prune_incoming_events", {"limit": 10}) == {"deleted": 0}, "a wait has it"
    send(lab.one, payload={"n": 2})

    assert match(lab.one) == 1

    assert [event["payload"] for event in result(lab)["events"]] == [{"n": 1}, {"n": 2}]


def test_a_wait_for_all_events_ends_with_those_that_came_until_its_timeout(lab: Lab) -> None:
    task = waiting(lab, wait=awaited(take="all"))
    for n in range(3):
        send(lab.one, payload={"n": n})
    assert match(lab.one) == 3
    lab.one.set_time(HOUR + 1, NOON)

    due(lab.one)

    assert lab.states(task)["b"] == "complete"
    assert sorted(event["payload"]["n"] for event in result(lab)["events"]) == [0, 1, 2]


def test_a_wait_collects_no_more_than_a_result_holds(lab: Lab) -> None:
    task = waiting(lab, wait=awaited(take="all"))
    for n in range(2):
        send(lab.one, payload={"n": n})
    lab.observer.execute("update tasker.incoming_events set bytes = 10000000")

    assert match(lab.one) == 1

    assert pairs(lab.one)["pairs"] == []
    lab.one.set_time(HOUR + 1, NOON)
    due(lab.one)
    assert lab.states(task)["b"] == "complete"
    assert len(result(lab)["events"]) == 1


def test_an_event_for_very_many_waits_is_given_to_all_of_them_in_parts(lab: Lab) -> None:
    lab.one.set_time(0, NOON)
    plan = lab.plan(Spec("b", wait=awaited()), name="paid")
    lab.submit(plan, *({"context": {"order": "7"}} for _ in range(7)))
    due(lab.one)
    send(lab.one)
    matched = 0
    while (found := pairs(lab.one, limit=3))["pairs"]:
        matched += match(lab.one, found)

    assert matched == 7
    assert "unmatched" not in due(lab.one)


def test_an_operator_ends_a_wait_for_an_event(lab: Lab) -> None:
    task = waiting(lab)
    lab.one.advance(operator("complete", lab.steps(task)["b"], r={"by": "a person"}))
    send(lab.one)

    assert match(lab.one) == 0
    assert (lab.states(task)["c"], outcomes(lab), timers(lab)) == ("enqueued", ["operator"], [])


def test_the_key_of_a_wait_may_be_in_the_result_of_the_same_write(lab: Lab) -> None:
    lab.one.set_time(0, NOON)
    event = {"event": PAID, "key": {"step": "a", "path": ["session"]}, "schema": None}
    plan = lab.plan(Spec("a"), Spec("b", depends_on=("a",), wait=awaited(events=[event])), name="keyed")
    task, claims = lab.running(plan)

    lab.one.advance(ok(claims["a"], {"session": 4711}))
    send(lab.one, key="4711")

    assert match(lab.one) == 1
    assert lab.states(task)["b"] == "complete"
