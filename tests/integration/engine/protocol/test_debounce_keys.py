"""A submission and the start of the task that it would be merged into, at one moment."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from tasker.clock import new_task_uuid
from tests.integration.engine.protocol.test_delays import WHY
from tests.support.engine_fixture import Lab
from tests.support.random_plans import Spec

DEBOUNCE = {"value": "7", "wait_ms": 60_000, "latest_ms": 600_000, "collect": False, "most": 10, "bytes": 10_000}


@pytest.fixture
def plan(lab: Lab) -> Any:
    return replace(lab.plan(Spec("index")), debounce={"key": None, "wait": 60, "max_wait": 600, "keep": "latest"})


def entry(run: str) -> dict[str, Any]:
    return {"delay_ms": 60_000, "context": {"run": run}, "debounce": DEBOUNCE, "id": new_task_uuid()}


def context(lab: Lab, task: str) -> Any:
    return lab.observer.value("select context->>'run' from tasker.task_details where task_uuid = %s", task)


def due(lab: Lab) -> Any:
    return lab.two.call("due", lab.two.args(limit=10))


def test_a_submission_that_waits_for_the_start_of_the_task_creates_the_next_one(lab: Lab, plan: Any) -> None:
    (first,) = lab.submit(plan, entry("a"))
    lab.two.set_time(61)

    with lab.transaction(lab.two):
        assert due(lab)["promoted"] == 1
        submitting = lab.later(lab.one.submit, plan, entry("b"))
        lab.waits(submitting, lab.one, on=lab.two)
    answer = submitting.result(timeout=60)

    (second,) = answer["created"]
    assert "debounced" not in answer
    assert (context(lab, first), context(lab, second)) == ("a", "b")
    assert lab.states(first) == {"index": "enqueued"}


def test_a_start_passes_over_a_task_into_which_a_submission_is_merged(lab: Lab, plan: Any) -> None:
    (first,) = lab.submit(plan, entry("a"))
    lab.two.set_time(61)

    with lab.transaction(lab.one):
        answer = lab.one.submit(plan, entry("b"))
        assert [task for task, *_ in answer["debounced"].values()] == [first]
        assert due(lab).get("promoted", 0) == 0
    assert due(lab).get("promoted", 0) == 1, "the clock of the second session is 61 seconds ahead"
    assert context(lab, first) == "b"


def test_two_submissions_of_the_same_keys_in_other_orders_do_not_block_each_other(lab: Lab, plan: Any) -> None:
    keys = [{**DEBOUNCE, "value": value} for value in "ab"]
    entries = [{**entry("x"), "debounce": key, "identity": str(uuid4())} for key in keys]
    lab.submit(plan, *entries)

    with lab.transaction(lab.one):
        lab.one.submit(plan, *({**each, "id": new_task_uuid(), "identity": str(uuid4())} for each in entries))
        other = [{**each, "id": new_task_uuid(), "identity": str(uuid4())} for each in reversed(entries)]
        waiting = lab.later(lab.two.submit, plan, *other)
        lab.waits(waiting, lab.two, on=lab.one)
    assert len(waiting.result(timeout=60)["debounced"]) == 2


def test_a_submission_does_not_wait_for_the_deletion_of_the_last_task_of_its_key(lab: Lab, plan: Any) -> None:
    """Retention has the task and then deletes its key: a submission with the key must not want the task."""
    (first,) = lab.submit(plan, entry("a"))
    lab.two.core("cancel", {"task": first, **WHY})

    with lab.transaction(lab.two):
        lab.two.execute("select from tasker.tasks where task_uuid = %s for update", first)
        answer = lab.later(lab.one.submit, plan, entry("b")).result(timeout=30)

    assert len(answer["created"]) == 1
