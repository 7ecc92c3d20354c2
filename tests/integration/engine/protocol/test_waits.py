"""Steps that wait for a time: in progress without a worker, ended by a timer, and by nothing twice."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.integration.engine.protocol.test_delays import HOUR, WHY, due
from tests.support.engine_fixture import Item, Lab, change, fail, ok, operator
from tests.support.random_plans import DECISION, Spec, create_steps

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOURS: Item = {"on": "time", "for_seconds": HOUR}


def at(seconds: float) -> str:
    return (NOON + timedelta(seconds=seconds)).isoformat()


def timers(lab: Lab) -> list[tuple[str, float]]:
    """The kinds of all timers, and how many seconds after noon they are due."""
    query = "select kind::text, extract(epoch from due_at - %s) from tasker.timers order by due_at, subject"
    return [(kind, float(seconds)) for kind, seconds in lab.observer.rows(query, NOON)]


def waiting(lab: Lab, wait: Item = HOURS, **more: Any) -> str:
    """A task whose step `b` waits behind `a`, before `c`; `a` is complete."""
    lab.one.set_time(0, NOON)
    specs = Spec("a"), Spec("b", depends_on=("a",), wait=wait, **more), Spec("c", depends_on=("b",))
    task, claims = lab.running(lab.plan(*specs, name="waiting"), context={"trip": {"at": at(HOUR)}})
    lab.one.advance(ok(claims["a"], {"at": at(HOUR)}))
    return task


def waits(lab: Lab) -> list[tuple[str, str | None]]:
    """Kind and outcome of all waits, in their order."""
    return [
        (row.kind, row.outcome) for row in lab.observer.rows("select * from tasker.step_waits order by since, token")
    ]


def test_a_wait_is_in_progress_without_a_worker_and_ends_at_its_time(lab: Lab) -> None:
    task = waiting(lab)

    step = lab.steps(task)["b"]
    assert (step.state, step.worker_uuid, step.claim_token, step.attempts) == ("in_progress", None, 1, 1)
    assert lab.step_paths(task, "b") == ["pending>in_progress"]
    assert (lab.task(task).state, lab.task(task).active, lab.task(task).waits) == ("steps_in_process", 1, True)
    assert (lab.queue_depth(), lab.one.claim(), timers(lab)) == (0, [], [("w", HOUR)])
    lab.check()
    lab.one.set_time(HOUR - 1, NOON)
    assert not due(lab.one).get("promoted")
    lab.one.set_time(HOUR + 1, NOON)

    (claim,) = due(lab.one, slots=1)["claims"]

    assert claim["name"] == "c", "what follows is handed off to the process that watches the timers"
    assert lab.states(task)["b"] == "complete"
    assert waits(lab) == [("w", "time")]
    assert timers(lab) == []
    result = lab.observer.value("select result from tasker.step_results where name = 'b'")
    assert [*result] == ["waited_until"]
    lab.one.finish(claim)
    assert lab.task(task).state == "complete"


def test_a_root_that_waits_begins_without_a_worker(lab: Lab) -> None:
    lab.one.set_time(0, NOON)
    task = lab.submit_one(lab.plan(Spec("b", wait=HOURS), name="root"))

    due(lab.one)

    assert lab.states(task)["b"] == "in_progress"
    lab.check()
    lab.one.set_time(HOUR + 1, NOON)
    due(lab.one)
    assert lab.task(task).state == "complete"


@pytest.mark.parametrize("place", [{"input": ["trip", "at"]}, {"step": "a", "path": ["at"]}, None])
def test_a_wait_ends_at_a_time_in_the_data(lab: Lab, place: Item | None) -> None:
    lab.one.set_time(0, NOON)
    waiting(lab, {"on": "time", "until": place or {"time": at(HOUR)}})

    assert timers(lab) == [("w", HOUR)]


@pytest.mark.parametrize("root", [True, False])
def test_a_wait_without_a_time_in_the_data_fails_and_says_where(lab: Lab, root: bool) -> None:
    wait = {"on": "time", "until": {"input": ["trip", "starts_at"]}}
    if root:
        lab.one.set_time(0, NOON)
        task = lab.submit_one(lab.plan(Spec("b", wait=wait), name="root"))
        due(lab.one)
    else:
        task = waiting(lab, wait)

    due(lab.one)

    error = lab.observer.value("select error from tasker.step_failures")
    assert (error["error_type"], lab.task(task).state) == ("not_a_time", "error")
    assert error["message"] == "until: expected a time such as 2026-01-31T18:00:00Z at input.trip.starts_at"
    assert (waits(lab), timers(lab)) == ([("w", "failed")], [])


@pytest.mark.parametrize(
    ("word", "after", "expected"),
    [
        ({"next": "monday", "at": "09:00", "timezone": "Europe/Berlin"}, "2026-07-06T07:00Z", "2026-07-13T07:00Z"),
        ({"next": "monday", "at": "09:00", "timezone": "Europe/Berlin"}, "2026-07-06T06:59Z", "2026-07-06T07:00Z"),
        ({"next": "day", "at": "02:30", "timezone": "Europe/Berlin"}, "2026-03-28T12:00Z", "2026-03-29T01:30Z"),
        ({"next": "weekday", "at": "08:00", "timezone": "UTC"}, "2026-07-03T09:00Z", "2026-07-06T08:00Z"),
        ({"next": "month", "at": "00:00", "timezone": "America/New_York"}, "2026-01-31T04:59Z", "2026-02-01T05:00Z"),
    ],
)
def test_a_calendar_word_is_the_next_such_time_in_its_zone(lab: Lab, word: Item, after: str, expected: str) -> None:
    query = "select tasker.next_calendar_time(%s::jsonb, %s::timestamptz) = %s::timestamptz"
    assert lab.one.value(query, json.dumps(word), after, expected)


def test_the_second_end_of_a_wait_changes_nothing(lab: Lab) -> None:
    task = waiting(lab)
    step = lab.steps(task)["b"]
    item = {**operator("ok", step), "k": step.claim_token, "r": {"by": "first"}}
    lab.one.advance(item)

    answer = lab.two.advance({**item, "r": {"by": "second"}})

    assert answer["verdicts"] == {str(step.workflow_step_uuid): "already_accepted"}
    assert lab.observer.value("select result from tasker.step_results where name = 'b'") == {"by": "first"}


@pytest.mark.parametrize(("kind", "state"), [("resolve", "resolved_manually"), ("complete", "complete")])
def test_an_operator_ends_a_wait_and_its_timer(lab: Lab, kind: str, state: str) -> None:
    task = waiting(lab)

    lab.one.advance(operator(kind, lab.steps(task)["b"], r={}))

    assert lab.states(task) == {"a": "complete", "b": state, "c": "enqueued"}
    assert (waits(lab), timers(lab)) == ([("w", "operator")], [])


def test_a_cancelled_task_waits_no_more(lab: Lab) -> None:
    task = waiting(lab)

    answer = lab.one.core("cancel", {"task": task, **WHY})

    assert "running" not in answer, "no worker has to stop"
    assert lab.states(task)["b"] == "cancelled"
    assert (waits(lab), timers(lab), lab.task(task).suspended) == ([("w", "cancelled")], [], 0)


def test_a_deadline_ends_a_wait(lab: Lab) -> None:
    lab.one.set_time(0, NOON)
    task = lab.submit_one(lab.plan(Spec("b", wait=HOURS), name="root"), deadline_ms=60_000)
    due(lab.one)
    lab.one.set_time(61, NOON)

    due(lab.one)

    assert (lab.states(task), lab.task(task).state) == ({"b": "error"}, "error")
    assert (waits(lab), timers(lab)) == ([("w", "failed")], [])


def test_a_pause_stops_no_wait_but_what_follows(lab: Lab) -> None:
    lab.one.core("pause", {"namespace": lab.namespace, **WHY})
    lab.one.set_time(0, NOON)
    task = lab.submit_one(lab.plan(Spec("b", wait=HOURS), Spec("c", depends_on=("b",)), name="paused"))
    due(lab.one)
    assert lab.states(task)["b"] == "in_progress"
    lab.one.set_time(HOUR + 1, NOON)

    due(lab.one, slots=1)

    assert lab.states(task) == {"b": "complete", "c": "pending"}
    assert lab.task(task).held == 1


def test_a_reset_waits_anew(lab: Lab) -> None:
    task = waiting(lab)
    step = lab.steps(task)["b"]
    lab.one.advance({**fail({"step": str(step.workflow_step_uuid), "task": task, "token": 1}), "kind": "fail"})
    assert lab.task(task).state == "error"
    lab.one.set_time(60, NOON)

    lab.one.advance(operator("reset", lab.steps(task)["b"]))

    assert lab.states(task)["b"] == "in_progress"
    assert (waits(lab), timers(lab)) == ([("w", "failed"), ("w", None)], [("w", HOUR + 60)])


def test_a_wait_that_a_decision_creates_begins_at_once(lab: Lab) -> None:
    lab.one.set_time(0, NOON)
    plan = lab.plan(Spec("route", DECISION), Spec("b", depends_on=("route",), wait=HOURS), name="decides")
    task, claims = lab.running(plan)
    new = [{"name": "b", "ordinal": 1, "parents": ["route"]}]

    lab.one.advance(ok(claims["route"], create_steps("b"), x=new, gv=0))

    assert (lab.states(task)["b"], timers(lab)) == ("in_progress", [("w", HOUR)])


def test_sweeps_leave_a_wait_alone_and_find_one_that_is_lost(lab: Lab) -> None:
    task = waiting(lab)
    lab.one.set_time(HOUR / 2, NOON)
    everything = {"limit": 500, "steps": 2000, "idle_grace_ms": 0, "begin": True}
    nothing = {"orphans", "forgotten", "unfinished", "unwaiting", "untimed"}
    assert "last" not in lab.one.core("sweep", {"limit": 500, "steps": 2000}), "nothing is under way"
    assert not set(lab.one.core("find_waiting", everything)) & nothing

    lab.observer.execute("delete from tasker.timers")
    (untimed,) = lab.one.core("find_waiting", everything)["untimed"]
    assert lab.one.core("mend_waits", {"steps": [untimed["s"]]}) == {"mended": 1}
    assert timers(lab) == [("w", HOUR)]
    lab.observer.execute("delete from tasker.step_waits")
    (unwaiting,) = lab.one.core("find_waiting", everything)["unwaiting"]
    lab.one.advance(change("retry", {"step": unwaiting["s"], "task": task, "token": unwaiting["k"]}, d=0, e={}))
    due(lab.one)

    assert lab.states(task)["b"] == "in_progress"
    assert lab.steps(task)["b"].attempts == 2


def test_end_of_a_wait_is_postponed_while_its_task_is_locked(lab: Lab) -> None:
    task = waiting(lab)
    lab.two.set_time(HOUR + 1, NOON)
    with lab.transaction(lab.one):
        lab.one.advance(operator("complete", lab.steps(task)["b"], r={"by": "a person"}))
        assert due(lab.two)["passed_over"]

    assert not due(lab.two).get("promoted")
    assert lab.observer.value("select result from tasker.step_results where name = 'b'") == {"by": "a person"}


def test_a_task_that_waits_is_not_stale(lab: Lab) -> None:
    task = waiting(lab, {"on": "time", "for_seconds": 30 * 24 * HOUR})
    lab.one.set_time(29 * 24 * HOUR, NOON)

    stale = lab.one.core("stale", {"limit": 100})

    assert stale == {"searched": True} or not stale.get("stale"), stale
    assert lab.task(task).complete is False
