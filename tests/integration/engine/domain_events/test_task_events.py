"""The end of a task is a durable event, if its template says so."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.engine_fixture import Lab, fail, operator
from tests.support.random_plans import Spec


def running(lab: Lab, **entry: Any) -> tuple[str, Any]:
    plan = replace(lab.plan(Spec("charge"), name="told"), task_events=True)
    task, claims = lab.running(plan, **entry)
    return task, claims["charge"]


def events(lab: Lab, task: str) -> list[Any]:
    return list(lab.observer.core("events", {"task": task, "limit": 100})["events"])


def end(lab: Lab, task: str, claim: Any, how: str) -> None:
    if how == "completed":
        lab.one.finish(claim)
    elif how == "failed":
        lab.one.advance(fail(claim))
    else:
        lab.one.call("cancel", {"task": task, "worker": lab.one.worker, "reason": "not needed"})


@pytest.mark.parametrize(
    ("how", "status", "more"),
    [
        ("completed", "complete", {}),
        ("failed", "error", {"failed_steps": ["charge"]}),
        ("cancelled", "cancelled", {"cancel_reason": "not needed"}),
    ],
)
def test_the_end_of_a_task_is_one_durable_event(lab: Lab, how: str, status: str, more: dict[str, Any]) -> None:
    task, claim = running(lab)
    assert events(lab, task) == []

    end(lab, task, claim, how)

    (event,) = events(lab, task)
    times = {event["payload"].pop(name) for name in ("created_at", "completed_at")}
    assert len(times) == 2
    assert event["event_name"] == f"task.{how}"
    assert event["payload"] == {"task_uuid": task, "template": "told", "version": "1.0.0", "status": status, **more}
    assert event["subject"] == task
    assert (event["metadata"]["step_uuid"], event["metadata"]["step_name"]) == (None, None)
    lab.check()


def test_a_task_that_an_operator_continues_has_an_event_for_each_end(lab: Lab) -> None:
    task, claim = running(lab)
    lab.one.advance(fail(claim))
    lab.one.advance(operator("reset", lab.steps(task)["charge"]))
    lab.one.run_all()

    assert [event["event_name"] for event in events(lab, task)] == ["task.failed", "task.completed"]
    lab.check()


def test_a_task_past_its_deadline_has_failed(lab: Lab) -> None:
    lab.one.set_time(0)
    task, _ = running(lab, deadline_ms=1000)
    lab.one.set_time(2)
    lab.one.call("due", lab.one.args())

    assert [event["event_name"] for event in events(lab, task)] == ["task.failed"]


def test_a_task_of_a_template_that_says_nothing_has_no_event(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    lab.one.finish(claims["s0"])

    assert events(lab, task) == []
