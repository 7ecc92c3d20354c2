"""Reasons of steps that wait for a time, a permit or other submissions."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC

from tests.integration.engine.explain.conftest import Told, at_work
from tests.support.engine_fixture import change
from tests.support.random_plans import Spec


def test_a_scheduled_task_says_when_it_begins_and_how_to_drop_it(told: Told) -> None:
    at_work(told.lab.one, "w1")
    (task,) = told.lab.submit(told.lab.chain(2), {"delay_ms": 600_000})

    assert told.sentences(task) == {
        "s0": "scheduled: its task was submitted to begin at 12:10:00",
        "s1": "waits for s0",
    }
    assert told.one(task, "s0").remedy() == f"it begins then; to drop it: tasker task cancel {task}"
    assert not told.task(task).needs_somebody
    told.at(601)
    assert told.sentence(task, "s0") == "was to begin at 12:10:00 and is not enqueued yet"


def test_a_debounced_task_says_until_when_submissions_are_merged(told: Told) -> None:
    at_work(told.lab.one, "w1")
    debounce = {"value": "7", "wait_ms": 60_000, "latest_ms": 600_000, "collect": False, "most": 10, "bytes": 10_000}
    plan = replace(told.lab.plan(Spec("index")), debounce={"key": None, "wait": 60, "max_wait": 600, "keep": "latest"})
    (task,) = told.lab.submit(plan, {"delay_ms": 60_000, "debounce": debounce})

    assert told.sentence(task, "index") == (
        "debounced: submissions of the same key are merged into its task until it begins at 12:01:00, "
        "at the latest at 12:10:00; submissions so far: 1"
    )
    assert told.one(task, "index").remedy() == f"it begins then; to drop it: tasker task cancel {task}"


def test_a_step_that_waits_for_a_permit_says_of_which_limit_and_who_has_it(told: Told) -> None:
    at_work(told.lab.one, "w1")
    rule = {"name": "step shop/order/charge", "key": {"input": ["customer"]}, "max_running": 1}
    plan = told.lab.plan(Spec("charge", limits=(rule,)), name="limited")
    first, second, third = told.lab.submit(plan, *({"context": {"customer": "acme"}} for _ in range(3)))
    told.lab.one.call("due", told.lab.one.args())

    has_it = next(task for task in (first, second, third) if told.lab.states(task)["charge"] == "enqueued")
    sentences = {told.sentence(task, "charge") for task in {first, second, third} - {has_it}}
    common = f"waits for a permit of the limit step shop/order/charge, key acme: 1 of 1 run, in the tasks {has_it}"
    assert sentences == {common, f"{common}; 1 step before it"}


def test_a_step_that_waits_for_a_token_says_of_which_rate(told: Told) -> None:
    at_work(told.lab.one, "w1")
    rule = {"name": "rate step shop/order/charge", "key": {"input": ["shop"]}, "rate": 0.5, "burst": 1}
    plan = told.lab.plan(Spec("charge", limits=(rule,)), name="rated")
    tasks = told.lab.submit(plan, *({"context": {"shop": "acme"}} for _ in range(2)))
    told.lab.one.call("due", told.lab.one.args())

    (waits,) = (task for task in tasks if told.lab.states(task)["charge"] == "pending")
    assert told.sentence(waits, "charge") == (
        "waits for its turn under the limit rate step shop/order/charge, key acme: 0.5 attempts per second"
    )


def test_a_delayed_step_says_until_when_even_in_a_pause(told: Told) -> None:
    at_work(told.lab.one, "w1")
    task, claims = told.lab.running(told.lab.plan(Spec("a"), Spec("b", depends_on=("a",), delay=600), name="delayed"))
    told.lab.one.finish(claims["a"])
    told.lab.one.core("pause", {"task": task, "actor": "ops", "reason": ""})

    assert told.sentence(task, "b") == "delayed until 12:10:00 by its `delay` or `not_before`"


def test_a_snoozed_step_says_until_when_and_why(told: Told) -> None:
    at_work(told.lab.one, "w1")
    task, claims = told.lab.running(told.lab.chain(1))
    told.lab.one.advance(change("snooze", claims["s0"], d=600_000, sn=3, n={"reason": "not paid yet"}), snoozes=True)

    assert told.sentence(task, "s0") == "its handler asked to be called again at 12:10:00: not paid yet"
    assert told.one(task, "s0").remedy() == "it is called then, without using an attempt"


def test_a_task_with_a_deadline_says_so_until_it_has_passed(told: Told) -> None:
    at_work(told.lab.one, "w1")
    task, _ = told.lab.running(told.lab.chain(1), deadline_ms=600_000)

    (dated,) = [reason for reason in told.task(task).reasons if reason.reason == "dated"]
    assert dated.sentence(UTC) == "the task has a deadline: what is open at 12:10:00 fails"
    told.at(601)
    told.lab.one.call("due", told.lab.one.args())
    assert "dated" not in [reason.reason for reason in told.task(task).reasons]
