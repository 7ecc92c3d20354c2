"""A submission in a worker's process claims the first steps for it, where nothing else has a right to its slots."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engine_fixture import Answer, Lab, ok
from tests.support.random_plans import Spec

TWO_ROOTS = (Spec("a"), Spec("b"), Spec("c", depends_on=("a", "b")))


def submitted(lab: Lab, *entries: dict[str, Any], **caller: Any) -> Answer:
    """Submit tasks of two roots and a step below both as the lab's first worker, which serves all and has ten slots."""
    plan = lab.plan(*TWO_ROOTS)
    lab.two.submit(plan, {})  # so that the template and the queue are there
    lab.two.run_all()
    return lab.one.submit(plan, *entries or ({},), **lab.one.args(**{"slots": 10, **caller}))


def test_the_first_steps_run_under_a_claim_and_nothing_is_sent(lab: Lab) -> None:
    answer = submitted(lab)

    (task,) = answer["created"]
    assert [(row["name"], row["token"], row["attempt"]) for row in answer["claims"]] == [("a", 1, 1), ("b", 1, 1)]
    assert lab.states(task) == {"a": "in_progress", "b": "in_progress", "c": "pending"}
    assert lab.step_paths(task, "a") == ["pending>enqueued>in_progress"]
    assert lab.task(task).active == 2
    assert lab.queue_depth() == 0
    finished = lab.one.advance(*(ok(claim) for claim in answer["claims"]), slots=1)
    lab.one.finish(*finished["claims"])
    assert lab.task(task).state == "complete"


def test_they_have_the_deadline_of_steps_that_are_claimed_from_the_queue(lab: Lab) -> None:
    (task,) = submitted(lab, timeout_ms=5000, grace_ms=2000)["created"]
    row = lab.steps(task)["a"]

    assert (row.deadline_at - row.started_at).total_seconds() == 7


def test_handlers_read_the_context_as_it_is_stored(lab: Lab) -> None:
    context = {"a": None, "price": 1e16, "list": [{"b": None}]}
    answer = submitted(lab, {"context": context, "priority": 3})

    (task,) = answer["created"]
    read = lab.one.core("inputs", {"steps": [row["step"] for row in answer["claims"]]})["tasks"][task]
    assert answer["tasks"] == {task: read}
    assert type(read["context"]["price"]) is int


@pytest.mark.parametrize(
    "caller", [{"slots": 1}, {"namespace_ids": []}, {"window": 1}], ids=["one slot", "not served", "small window"]
)
def test_who_cannot_run_all_of_them_claims_none(lab: Lab, caller: dict[str, Any]) -> None:
    answer = submitted(lab, **caller)

    assert "claims" not in answer
    assert lab.queue_depth() == min(2, caller.get("window", 2))


def test_who_lacks_a_handler_claims_none(lab: Lab) -> None:
    template = lab.one.submit(lab.plan(*TWO_ROOTS), {}) and lab.observer.value(
        "select template_id from tasker.tasks where namespace_id = %s", lab.namespace_id
    )
    lab.one.run_all()

    assert "claims" not in submitted(lab, unserved=[f"{template}:1"])
    assert lab.queue_depth() == 2


def test_what_waits_in_the_queue_comes_first(lab: Lab) -> None:
    plan = lab.plan(*TWO_ROOTS)
    lab.submit(plan, {})

    answer = lab.one.submit(plan, {}, **lab.one.args(slots=10))

    assert "claims" not in answer
    assert lab.queue_depth() == 4


def test_an_urgent_task_waits_for_the_next_claim_when_others_wait(lab: Lab) -> None:
    plan = lab.plan(*TWO_ROOTS)
    lab.submit(plan, {})

    answer = lab.one.submit(plan, {"priority": 9}, **lab.one.args(slots=10))

    assert "claims" not in answer
    assert answer["sent"] == {lab.namespace: 0}
    assert {claim["task"] for claim in lab.one.take(2)} == set(answer["created"])


def test_what_is_paused_is_held(lab: Lab) -> None:
    who = {"actor": "test", "reason": "test"}
    lab.one.core("pause", {"namespace": lab.namespace, **who})

    answer = lab.one.submit(lab.plan(*TWO_ROOTS), {}, **lab.one.args(slots=10))

    assert "claims" not in answer
    assert set(lab.states(answer["created"][0]).values()) == {"pending"}
    assert lab.queue_depth() == 0
    lab.one.core("resume", {"namespace": lab.namespace, **who})


def test_an_answer_that_was_lost_is_made_up_for_without_an_attempt(lab: Lab) -> None:
    (task,) = submitted(lab)["created"]

    items = lab.one.core("reconcile", {"worker": lab.one.worker, "held": []})["items"]
    lab.one.advance(*({**item, "kind": "release"} for item in items))

    assert {row.attempts for row in lab.steps(task).values()} == {0}
    lab.two.run_all()
    assert lab.task(task).state == "complete"
