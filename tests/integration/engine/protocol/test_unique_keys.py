"""Unique keys: rows decide which of several submissions creates the task, whoever commits or dies when."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

from tasker.template.plan import Plan
from tests.support.engine_fixture import Lab, ok
from tests.support.random_plans import Spec


def unique(lab: Lab) -> Plan:
    return replace(lab.plan(Spec("a"), name="unique"), unique={})


def running(answer: Any) -> list[str]:
    return [task for task, *_ in answer.get("running", {}).values()]


def test_of_two_sessions_the_second_answers_the_task_of_the_first(lab: Lab) -> None:
    with lab.transaction(lab.one):
        (task,) = lab.one.submit(unique(lab), {"unique": "x"})["created"]
        second = lab.later(lab.two.submit, unique(lab), {"unique": "x"}, {"unique": "y"})
        lab.waits(second, lab.two, on=lab.one)
    answer = second.result()

    assert running(answer) == [task]
    assert len(answer["created"]) == 1


def test_a_rollback_gives_the_key_to_the_session_that_waits(lab: Lab) -> None:
    lab.one.execute("begin")
    lab.one.submit(unique(lab), {"unique": "x"})
    second = lab.later(lab.two.submit, unique(lab), {"unique": "x"})
    lab.waits(second, lab.two, on=lab.one)
    lab.one.execute("rollback")

    assert len(second.result()["created"]) == 1


def test_a_task_that_ends_while_a_submission_waits_for_its_key_is_answered_or_followed(lab: Lab) -> None:
    (task,) = lab.submit(unique(lab), {"unique": "x"})
    (claim,) = lab.one.claim()
    with lab.transaction(lab.one):
        lab.one.advance(ok(claim))
        assert running(lab.two.submit(unique(lab), {"unique": "x"})) == [task], "the end is not committed"

    assert len(lab.two.submit(unique(lab), {"unique": "x"})["created"]) == 1
    assert lab.task(task).complete


def test_a_submission_that_is_repeated_after_a_lost_answer_is_its_own_task(lab: Lab) -> None:
    entry = {"id": f"{str(uuid4())[:30]}000000", "identity": str(uuid4()), "unique": "x"}
    lab.submit(unique(lab), entry)
    again = lab.one.submit(unique(lab), entry)

    assert (again["created"], running(again)) == ([], [])


def test_a_repeated_submission_in_a_batch_takes_the_key_from_no_other(lab: Lab) -> None:
    first = {"identity": str(uuid4()), "unique": "x"}
    (task,) = lab.submit(unique(lab), first)
    lab.one.core("cancel", {"task": task})
    answer = lab.one.submit(unique(lab), first, {"unique": "x"})

    assert (len(answer["created"]), running(answer)) == (1, [])


def test_batches_of_the_same_keys_in_opposite_orders_do_not_block_each_other(lab: Lab) -> None:
    keys = [{"unique": key} for key in "abc"]
    with lab.transaction(lab.one):
        lab.one.submit(unique(lab), *keys)
        second = lab.later(lab.two.submit, unique(lab), *reversed(keys))
        lab.waits(second, lab.two, on=lab.one)

    assert len(running(second.result())) == 3


def test_tasks_of_the_template_run_like_any_other(lab: Lab) -> None:
    (task,) = lab.submit(unique(lab), {"unique": "x"})
    assert lab.task(task).gates == 0


def test_a_template_without_the_key_stores_none(lab: Lab) -> None:
    lab.submit(lab.chain(), {"unique": "x"}, {"unique": "x"})
    assert lab.observer.value("select count(*) from tasker.unique_keys") == 0
