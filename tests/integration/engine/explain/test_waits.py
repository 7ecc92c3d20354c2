"""What is said about steps that wait without a worker."""

from __future__ import annotations

from tests.integration.engine.explain.conftest import Told, at_work
from tests.integration.engine.protocol.test_approvals import persons
from tests.support.children import FanOut
from tests.support.engine_fixture import fail, ok
from tests.support.random_plans import Spec


def test_a_wait_says_until_when_and_a_lost_one_that_it_begins_anew(told: Told) -> None:
    at_work(told.lab.one, "w1")
    plan = told.lab.plan(Spec("a"), Spec("b", depends_on=("a",), wait={"on": "time", "for_seconds": 60}))
    task, claims = told.lab.running(plan)
    told.lab.one.advance(ok(claims["a"]))

    assert told.sentence(task, "b") == "waits until 12:01:00"
    told.at(61)
    assert told.sentence(task, "b") == "waited until 12:01:00, and its wait has not ended yet"
    told.lab.observer.execute("delete from tasker.step_waits")
    assert told.sentence(task, "b") == "its wait was lost"
    told.lab.one.core("cancel", {"task": task, "actor": "ops", "reason": "enough"})


def test_a_wait_for_an_event_says_which_and_what_did_not_fit(told: Told) -> None:
    at_work(told.lab.one, "w1")
    event = {"event": "payment.settled", "key": {"input": ["order"]}, "schema": None}
    wait = {"on": "event", "events": [event], "for_seconds": 7200}
    task = told.lab.submit_one(told.lab.plan(Spec("b", wait=wait)), context={"order": "7"})
    told.lab.one.call("due", told.lab.one.args())

    assert told.sentence(task, "b") == "waits for the event payment.settled with the key 7 until 14:00:00"
    row = told.lab.steps(task)["b"]
    refused = {"step": str(row.workflow_step_uuid), "task": task, "token": 1, "nth": 1, "event": task}
    told.lab.one.core("refuse_event", {**refused, "problem": "$: too short"})
    assert told.sentence(task, "b").endswith("; the payloads of 1 did not fit, the last because $: too short")
    remedy = told.one(task, "b").remedy()
    assert f"tasker events send {told.lab.namespace} payment.settled --key 7 --payload" in remedy


def test_a_step_with_child_tasks_says_how_many_are_left(told: Told) -> None:
    at_work(told.lab.one, "w1")
    fan_out = FanOut(told.lab, 4, opened=False, max_parallel=2, tolerated=1)
    assert told.sentence(fan_out.task, "a") == "waits for child tasks"

    fan_out.open(told.lab.one)
    first, _ = fan_out.start()
    claims = {claim["task"]: claim for claim in told.lab.one.claim()}
    told.lab.one.advance(fail(claims[first]), dead_letters=False)
    fan_out.gather()

    assert told.sentence(fan_out.task, "a") == "waits for 3 of 4 child tasks; 1 run; 1 failed, 1 tolerated"
    assert f"tasker task children {fan_out.task}" in told.one(fan_out.task, "a").remedy()


def test_an_approval_says_how_many_are_missing_and_who_may_decide(told: Told) -> None:
    at_work(told.lab.one, "w1")
    wait = persons(quorum=2, subjects=["bob", "ann"], permissions=["approvals:finance"], for_seconds=7200)
    task = told.lab.submit_one(told.lab.plan(Spec("b", wait=wait)))
    told.lab.one.call("due", told.lab.one.args())
    said = "waits for a person: {} of 2 approved; may decide: ann, bob, approvals:finance; until 14:00:00"

    assert told.sentence(task, "b") == said.format(0)
    told.lab.one.call("decide", told.lab.one.args(task=task, step="b", by="ann", decision="approved", via="api"))
    assert told.sentence(task, "b") == said.format(1)
    assert f"tasker approval decide {task} b --approve" in told.one(task, "b").remedy()
