"""Approvals: votes of persons that end a suspended step, each once, and never after its end."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.engine.protocol.test_delays import HOUR, WHY, due
from tests.integration.engine.protocol.test_waits import NOON, timers, waits
from tests.support.engine_fixture import Answer, Item, Lab, Session, operator
from tests.support.random_plans import Spec

DAY = 24 * HOUR


def persons(**more: Any) -> Item:
    """The wait of a plan for a decision; anybody may decide."""
    none = {"subjects": None, "permissions": None, "escalate_subjects": None, "escalate_permissions": None}
    times = {"for_seconds": 3 * DAY, "remind_seconds": None, "reminders": 0, "escalate_seconds": None}
    words = {"on": "person", "form": None, "quorum": 1, "reject": "first", "on_reject": "complete"}
    return {**words, **none, **times, **more}


def requested(lab: Lab, **wait: Any) -> str:
    """A task whose step `b` waits for a decision, before `c`."""
    lab.one.set_time(0, NOON)
    plan = lab.plan(Spec("b", wait=persons(**wait)), Spec("c", depends_on=("b",)), name="asked")
    task = lab.submit_one(plan, context={"boss": "eve", "team": ["fay", "gus"]})
    assert due(lab.one).get("begins_in_ms") == 0, "the timekeeper learns of its reminders at once"
    return task


def decide(session: Session, task: str, by: str = "ann", decision: str = "approved", **more: Any) -> Answer:
    vote = {"task": task, "step": "b", "by": by, "decision": decision, "permissions": [], "via": "api", **more}
    return session.call("decide", session.args(**vote))


def named(name: str, namespace: str | None = None) -> list[Item]:
    """A permission that templates name, as a caller has it."""
    return [{"p": f"approvals:{name}", "ns": namespace}]


def result(lab: Lab) -> Any:
    return lab.observer.value("select result from tasker.step_results where name = 'b'")


def events(lab: Lab) -> list[tuple[str, Any]]:
    rows = lab.observer.rows("select name, payload from tasker.domain_events order by event_id")
    return [(row.name, row.payload) for row in rows]


def test_an_approval_ends_the_step_with_who_and_what(lab: Lab) -> None:
    task = requested(lab)
    assert lab.states(task) == {"b": "in_progress", "c": "pending"}
    assert (waits(lab), lab.task(task).waits) == ([("a", None)], True)

    answer = decide(lab.one, task, form={"limit": 5}, comment="fine", proof="jwt")

    assert (answer["counted"], answer["ended"], answer["approval"]["outcome"]) == (True, True, "approved")
    assert lab.states(task) == {"b": "complete", "c": "enqueued"}
    decided = result(lab)
    (vote,) = decided.pop("votes")
    assert decided == {"approved": True, "by": "ann", "form": {"limit": 5}, "comment": "fine"}
    assert {**vote, "at": ""} == {
        "by": "ann", "decision": "approved", "form": {"limit": 5}, "comment": "fine", "via": "api", "at": "",
    }  # fmt: skip
    assert (waits(lab), timers(lab)) == ([("a", "approved")], [])
    lab.check()


def test_a_quorum_needs_different_persons(lab: Lab) -> None:
    task = requested(lab, quorum=2)

    assert decide(lab.one, task)["ended"] is False
    again = decide(lab.two, task, decision="rejected")

    assert (again["voted"], "counted" in again) == (True, False)
    assert [vote["decision"] for vote in again["approval"]["votes"]] == ["approved"], "the first vote stays"
    assert lab.states(task)["b"] == "in_progress"
    lab.check()
    assert decide(lab.one, task, "bob")["ended"] is True
    assert [vote["by"] for vote in result(lab)["votes"]] == ["ann", "bob"]
    lab.check()


def test_two_persons_at_the_same_moment_make_the_quorum(lab: Lab) -> None:
    task = requested(lab, quorum=2)
    two = lab.two
    with lab.transaction(lab.one):
        assert decide(lab.one, task)["ended"] is False
        other = lab.later(decide, two, task, "bob")
        lab.waits(other, two, on=lab.one)

    assert other.result(timeout=60)["ended"] is True
    assert lab.states(task)["b"] == "complete"
    lab.check()


def test_of_a_decision_and_an_operator_the_first_counts(lab: Lab) -> None:
    task = requested(lab)
    two = lab.two
    with lab.transaction(lab.one):
        lab.one.advance(operator("resolve", lab.steps(task)["b"], n=WHY))
        other = lab.later(decide, two, task)
        lab.waits(other, two, on=lab.one)

    assert other.result(timeout=60)["over"] is True
    assert lab.states(task)["b"] == "resolved_manually"
    assert lab.observer.value("select count(*) from tasker.approval_votes") == 0
    lab.check()


def test_of_a_decision_and_the_timeout_the_first_counts(lab: Lab) -> None:
    for vote_first in (True, False):
        task = requested(lab)
        for session in (lab.one, lab.two):
            session.set_time(3 * DAY + 1, NOON)
        second = lab.two
        with lab.transaction(lab.one):
            if vote_first:
                assert decide(lab.one, task)["ended"] is True
                due(second)
            else:
                due(lab.one)
                vote = lab.later(decide, second, task)
                lab.waits(vote, second, on=lab.one)
        if not vote_first:
            answer = vote.result(timeout=60)
            assert (answer["over"], answer["approval"]["outcome"]) == (True, "timeout")
        due(lab.one)
        assert lab.states(task)["b"] == ("complete" if vote_first else "error")
        lab.check()


def test_a_vote_after_the_end_changes_nothing(lab: Lab) -> None:
    task = requested(lab)
    decide(lab.one, task)

    late = decide(lab.one, task, "bob", "rejected")

    assert (late["over"], late["approval"]["outcome"], len(late["approval"]["votes"])) == (True, "approved", 1)
    assert lab.observer.value("select count(*) from tasker.approval_votes") == 1
    lab.check()


@pytest.mark.parametrize(("reject", "first_ends"), [("first", True), ("quorum", False)])
def test_a_rejection_is_a_result_for_a_decision_below(lab: Lab, reject: str, first_ends: bool) -> None:
    task = requested(lab, quorum=2, reject=reject)

    assert decide(lab.one, task, decision="rejected", comment="no")["ended"] is first_ends
    if not first_ends:
        decide(lab.one, task, "bob", "rejected", comment="no")

    assert (result(lab)["approved"], result(lab)["comment"]) == (False, "no")
    assert lab.states(task) == {"b": "complete", "c": "enqueued"}
    assert waits(lab) == [("a", "rejected")]
    lab.check()


def test_a_rejection_may_be_a_failure(lab: Lab) -> None:
    task = requested(lab, on_reject="fail")

    decide(lab.one, task, decision="rejected", comment="too much")

    assert lab.states(task)["b"] == "error"
    (error,) = [row.error for row in lab.observer.rows("select error from tasker.step_failures")]
    assert (error["error_type"], error["message"]) == ("rejected", "rejected by ann: too much")
    lab.check()


def test_only_those_named_decide(lab: Lab) -> None:
    persons = [{"input": ["boss"]}, {"input": ["team"]}, "ann"]
    task = requested(lab, subjects=persons, permissions=["approvals:finance"], quorum=4)

    assert lab.observer.value("select approvers from tasker.step_waits") == [
        "p:approvals:finance", "s:ann", "s:eve", "s:fay", "s:gus",
    ]  # fmt: skip
    assert decide(lab.one, task, "eva", permissions=named("sales"))["forbidden"]
    assert decide(lab.one, task, "eva", permissions=named("finance", "elsewhere"))["forbidden"]
    for name, permissions in (("ann", []), ("eve", []), ("gus", []), ("eva", named("finance"))):
        assert decide(lab.one, task, name, permissions=permissions)["counted"], name
    assert lab.states(task)["b"] == "complete"
    lab.check()


def test_a_path_without_a_person_fails_the_step(lab: Lab) -> None:
    task = requested(lab, subjects=[{"input": ["chief"]}])
    due(lab.one)

    assert lab.states(task)["b"] == "error"
    (error,) = [row.error for row in lab.observer.rows("select error from tasker.step_failures")]
    assert error["error_type"] == "approver_missing"
    assert error["message"] == "from: expected the name of a person at input.chief"
    lab.check()


def test_a_timeout_says_how_many_approved(lab: Lab) -> None:
    task = requested(lab, quorum=2)
    decide(lab.one, task)
    lab.one.set_time(3 * DAY + 1, NOON)

    due(lab.one)

    assert lab.states(task)["b"] == "error"
    (error,) = [row.error for row in lab.observer.rows("select error from tasker.step_failures")]
    assert (error["error_type"], error["message"]) == (
        "wait_timed_out", "not decided until 2026-01-04 12:00:00Z: 1 of 2 approved",
    )  # fmt: skip
    assert decide(lab.one, task, "bob")["over"] is True
    lab.check()


def test_reminders_come_in_their_time_and_end(lab: Lab) -> None:
    requested(lab, remind_seconds=DAY, reminders=2, subjects=["ann"])
    assert timers(lab) == [("m", DAY), ("w", 3 * DAY)]
    for day in (0.5, 1.1, 1.2, 2.2, 2.9):
        lab.one.set_time(day * DAY, NOON)
        due(lab.one)
        lab.check()

    names = [(name, payload.get("reminder")) for name, payload in events(lab)]
    assert names == [("approval.requested", None), ("approval.reminder", 1), ("approval.reminder", 2)]
    first = events(lab)[0][1]
    assert (first["subjects"], first["quorum"], first["step"], first["template"]) == (["ann"], 1, "b", "asked")
    assert first["page"] == f"approvals/{first['task_uuid']}/b"
    assert [kind for kind, _ in timers(lab)] == ["w"]


def test_an_escalation_lets_others_decide(lab: Lab) -> None:
    task = requested(lab, subjects=["ann"], escalate_seconds=DAY, escalate_subjects=[{"input": ["boss"]}])
    assert decide(lab.one, task, "eve")["forbidden"]
    lab.one.set_time(DAY + 1, NOON)
    due(lab.one)
    lab.check()

    assert (events(lab)[-1][0], events(lab)[-1][1]["subjects"]) == ("approval.escalated", ["ann", "eve"])
    assert decide(lab.one, task, "eve")["ended"] is True
    assert timers(lab) == []
    lab.check()


def test_no_reminder_after_the_decision(lab: Lab) -> None:
    task = requested(lab, remind_seconds=HOUR, reminders=5, escalate_seconds=2 * HOUR)
    decide(lab.one, task)

    assert timers(lab) == []
    lab.one.set_time(5 * HOUR, NOON)
    due(lab.one)
    assert [name for name, _ in events(lab)] == ["approval.requested"]


def test_a_cancelled_task_takes_no_vote(lab: Lab) -> None:
    task = requested(lab, remind_seconds=HOUR, reminders=5)
    lab.one.core("cancel", {"task": task, "worker": None, **WHY})

    assert decide(lab.one, task)["over"] is True
    assert (waits(lab), timers(lab)) == ([("a", "cancelled")], [])
    lab.check()


def test_a_step_that_is_reset_asks_again_without_the_old_votes(lab: Lab) -> None:
    task = requested(lab, on_reject="fail")
    decide(lab.one, task, decision="rejected")
    lab.one.advance(operator("reset", lab.steps(task)["b"], n=WHY))

    assert lab.states(task)["b"] == "in_progress"
    token = lab.observer.value("select min(token) from tasker.step_waits")
    assert decide(lab.one, task, token=token, by="bob")["over"] is True, "a link of the first request"
    assert decide(lab.one, task)["ended"] is True
    assert [name for name, _ in events(lab)] == ["approval.requested", "approval.requested"]
    lab.check()


def test_a_step_without_an_approval_is_missing(lab: Lab) -> None:
    task = requested(lab)

    assert decide(lab.one, task, step="c")["missing"]
    assert decide(lab.one, task, step="nowhere")["missing"]
