"""Limits of whole tasks: a task has its permit from its first step to its end; others wait, or somebody gives way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tasker.template.plan import Plan, StepLimit
from tests.integration.engine.protocol.test_delays import WHY, due
from tests.integration.engine.protocol.test_limits import permits, repairs, waiting
from tests.support.engine_fixture import Item, Lab, fail, ok, operator, retry
from tests.support.random_plans import Spec

ROOTS = (Spec("a"), Spec("b"), Spec("c", depends_on=("a", "b")))


@pytest.fixture(autouse=True)
def _no_violation_of_the_fleet(lab: Lab) -> Iterator[None]:
    yield
    assert lab.observer.rows("select * from tasker.violations_v1('{}')") == []


def single(lab: Lab, *specs: Spec, limit: int = 1, on_limit: str = "wait") -> Plan:
    """A template of which so many tasks of a customer are open at the same time."""
    key = {"input": ["customer"]}
    concurrency = StepLimit(f"task {lab.namespace}/single", key, limit, on_limit=on_limit)
    return replace(lab.plan(*(specs or ROOTS), name="single"), concurrency=concurrency)


def submitted(lab: Lab, plan: Plan, *customers: Any) -> list[str]:
    tasks = []
    for customer in customers:
        tasks += lab.submit(plan, {"context": {"customer": customer}})
        due(lab.one)
    return tasks


def finish(lab: Lab, task: str) -> None:
    """Let this task run to its end."""
    while not lab.task(task).complete:
        lab.one.advance(*(ok(claim) for claim in lab.running_claims(task).values()))


def test_the_next_task_begins_with_the_end_of_the_one_before(lab: Lab) -> None:
    first, second = submitted(lab, single(lab), *"xx")
    assert lab.states(first) == {"a": "enqueued", "b": "enqueued", "c": "pending"}
    assert lab.states(second) == {"a": "pending", "b": "pending", "c": "pending"}
    assert (permits(lab), waiting(lab)) == ([("x", 1)], [("x", 2)])

    finish(lab, first)

    assert lab.states(second) == {"a": "enqueued", "b": "enqueued", "c": "pending"}
    assert (permits(lab), waiting(lab)) == ([("x", 1)], [])
    finish(lab, second)
    assert permits(lab) == []


def test_other_values_of_the_key_have_permits_of_their_own(lab: Lab) -> None:
    tasks = submitted(lab, single(lab, limit=2), *"xxxy")

    assert [lab.states(task)["a"] for task in tasks] == ["enqueued", "enqueued", "pending", "enqueued"]


@pytest.mark.parametrize("how", ["retry", "release", "pause"])
def test_a_task_keeps_its_permit_until_it_ends(lab: Lab, how: str) -> None:
    first, second = submitted(lab, single(lab, Spec("a"), Spec("b", depends_on=("a",))), *"xx")
    (claim,) = lab.one.claim()
    if how == "retry":
        lab.one.advance(retry(claim))
    elif how == "release":
        lab.one.advance({"s": claim["step"], "t": claim["task"], "k": claim["token"], "kind": "release"})
    else:
        lab.one.core("pause", {"task": first, **WHY})
        lab.one.advance(ok(claim))
    assert repairs(lab) == {}
    due(lab.one)

    assert lab.states(second)["a"] == "pending"
    assert permits(lab) == [("x", 1)]


@pytest.mark.parametrize("how", ["fail", "cancel", "resolve"])
def test_any_end_of_a_task_lets_the_next_begin(lab: Lab, how: str) -> None:
    first, second = submitted(lab, single(lab, Spec("a")), *"xx")
    (claim,) = lab.one.claim()
    if how == "fail":
        lab.one.advance(fail(claim))
    elif how == "cancel":
        lab.one.core("cancel", {"task": first})
    else:
        lab.one.advance(operator("resolve", lab.steps(first)["a"]))
    due(lab.one)

    assert lab.task(first).complete
    assert lab.states(second)["a"] == "enqueued"


def test_a_failed_task_that_goes_on_waits_for_a_permit_again(lab: Lab) -> None:
    first, second = submitted(lab, single(lab, Spec("a")), *"xx")
    (claim,) = lab.one.claim()
    lab.one.advance(fail(claim))
    lab.one.advance(operator("reset", lab.steps(first)["a"]))

    assert (lab.states(first)["a"], lab.states(second)["a"]) == ("pending", "enqueued")
    finish(lab, second)
    assert lab.states(first)["a"] == "enqueued"


def test_a_new_task_above_the_limit_is_cancelled(lab: Lab) -> None:
    first, second = submitted(lab, single(lab, on_limit="cancel_new"), *"xx")
    due(lab.one)

    assert lab.task(second).state == "cancelled"
    assert lab.observer.value("select cancel_reason from tasker.task_details where task_uuid = %s", second) == "limit"
    assert lab.states(first)["a"] == "enqueued"
    finish(lab, first)
    (third,) = submitted(lab, single(lab, on_limit="cancel_new"), "x")
    assert lab.states(third)["a"] == "enqueued"


def test_the_oldest_running_task_gives_way(lab: Lab) -> None:
    plan = single(lab, limit=2, on_limit="cancel_running")
    others, tasks = submitted(lab, plan, *"yy"), submitted(lab, plan, *"xxx")
    due(lab.one)
    due(lab.one)

    assert [lab.task(task).state for task in tasks] == ["cancelled", "steps_in_process", "steps_in_process"]
    assert [lab.task(task).state for task in others] == ["steps_in_process"] * 2, "older, but of another customer"
    assert (permits(lab), waiting(lab)) == ([("x", 2), ("y", 2)], [])


def test_a_task_that_gives_way_is_cancelled_when_it_is_free(lab: Lab) -> None:
    plan = single(lab, on_limit="cancel_running")
    first, second = submitted(lab, plan, "x"), lab.submit(plan, {"context": {"customer": "x"}})

    with lab.transaction(lab.two):
        lab.two.execute("select from tasker.tasks where task_uuid = %s for update", first[0])
        due(lab.one)
        due(lab.one)
        assert lab.states(second[0])["a"] == "pending"

    due(lab.one)
    due(lab.one)
    assert lab.task(first[0]).state == "cancelled"
    assert lab.states(second[0])["a"] == "enqueued"


def test_a_step_with_a_limit_of_its_own_waits_for_both(lab: Lab) -> None:
    own: Item = {"name": "own", "key": None, "max_running": 1}
    tasks = submitted(lab, single(lab, Spec("a", limits=(own,)), Spec("b", limits=(own,)), limit=2), *"xx")

    states = [lab.states(task)[name] for task in tasks for name in "ab"]
    assert sorted(states) == ["enqueued", "pending", "pending", "pending"]
    finish_any(lab, tasks)
    assert {lab.task(task).state for task in tasks} == {"complete"}
    assert (permits(lab), waiting(lab)) == ([], [])


def finish_any(lab: Lab, tasks: list[str]) -> None:
    for _ in range(10):
        for task in tasks:
            lab.one.advance(*(ok(claim) for claim in lab.running_claims(task).values()))
        due(lab.one)


def test_a_delayed_first_step_of_a_running_task_needs_no_further_permit(lab: Lab) -> None:
    lab.one.set_time(0)
    first, second = submitted(lab, single(lab, Spec("a"), Spec("b", delay=60)), *"xx")
    lab.one.set_time(61)
    due(lab.one)

    assert lab.states(first) == {"a": "enqueued", "b": "enqueued"}
    assert lab.states(second) == {"a": "pending", "b": "pending"}


def test_a_task_without_a_value_of_its_key_fails_and_says_where(lab: Lab) -> None:
    (task,) = lab.submit(single(lab, Spec("a")), {})
    due(lab.one)

    assert lab.states(task)["a"] == "error"
    (error,) = lab.observer.rows("select error from tasker.step_failures")
    assert error[0]["error_type"] == "limit_key_missing"


def test_the_permit_of_a_locked_task_goes_to_the_one_behind_it(lab: Lab) -> None:
    first, second, third = submitted(lab, single(lab, Spec("a")), *"xxx")
    with lab.transaction(lab.two):
        lab.two.execute("select from tasker.tasks where task_uuid = %s for update", second)
        finish(lab, first)
        assert (lab.states(third)["a"], permits(lab)) == ("enqueued", [("x", 1)])

    assert lab.states(second)["a"] == "pending"
    finish(lab, third)
    finish(lab, second)
    assert (permits(lab), waiting(lab)) == ([], [])
