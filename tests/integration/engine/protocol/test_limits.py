"""Limits of what runs at the same time: permits are rows, and go to the next step in the commit that frees them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from tasker.template.plan import Plan
from tests.integration.engine.dead_letters.test_staleness import search
from tests.integration.engine.protocol.test_delays import WHY, due
from tests.support.engine_fixture import Item, Lab, fail, ok, operator, retry
from tests.support.random_plans import Spec

CUSTOMER = {"input": ["customer"]}


@pytest.fixture(autouse=True)
def _no_violation_of_the_fleet(lab: Lab) -> Iterator[None]:
    yield
    assert lab.observer.rows("select * from tasker.violations_v1('{}')") == []


def limited(lab: Lab, limit: int = 1, key: Any = CUSTOMER, name: str = "limited", **more: Any) -> Plan:
    """One step with a limit for each customer, and a plain one behind it."""
    rule = {"name": f"step {lab.namespace}/{name}/a", "key": key, "max_running": limit}
    return lab.plan(Spec("a", limits=(rule,), **more), Spec("b", depends_on=("a",)), name=name)


def submitted(lab: Lab, plan: Plan, *customers: Any) -> list[str]:
    """Tasks of these customers, in order, each with its first step where it belongs."""
    tasks = []
    for customer in customers:
        tasks += lab.submit(plan, {"context": {"customer": customer}})
    due(lab.one)
    return tasks


def permits(lab: Lab) -> list[tuple[str, int]]:
    return _counted(lab, "limit_permits")


def waiting(lab: Lab) -> list[tuple[str, int]]:
    return _counted(lab, "limit_waiters")


def _counted(lab: Lab, table: str) -> list[tuple[str, int]]:
    rows = lab.observer.rows(f"select value, count(*) from tasker.{table} group by 1 order by 1")
    return [(str(value), int(count)) for value, count in rows]


def register(lab: Lab, plan: Plan) -> None:
    lab.one.core("register_template", {"hash": plan.hash, "plan": json.loads(plan.to_json())})


def repairs(lab: Lab) -> dict[str, int]:
    repaired = lab.one.core("repair", {"begin": True}).get("repaired") or {}
    return {kind: count for kind, count in repaired.items() if count}


def run(lab: Lab, plan: Plan, *customers: Any) -> tuple[list[str], list[Item]]:
    """Tasks of these customers, and the claims of the steps that got permits."""
    return submitted(lab, plan, *customers), lab.one.claim()


def test_no_more_steps_of_a_key_run_than_its_limit(lab: Lab) -> None:
    tasks, claims = run(lab, limited(lab, 2), *"aaabb")

    assert sorted(claim["task"] for claim in claims) == sorted([*tasks[:2], *tasks[3:]])
    assert permits(lab) == [("a", 2), ("b", 2)]
    assert waiting(lab) == [("a", 1)]
    assert (lab.task(tasks[2]).state, lab.task(tasks[2]).held) == ("waiting_for_dependencies", 1)


@pytest.mark.parametrize("end", [ok, fail, retry])
def test_the_write_that_ends_a_step_hands_its_permit_on(lab: Lab, end: Any) -> None:
    tasks, (claim,) = run(lab, limited(lab), *"aa")

    answer = lab.one.advance(end(claim), slots=5)

    granted = [claim["task"] for claim in answer["claims"]]
    assert tasks[1] in granted
    assert permits(lab) == [("a", 1)]
    assert waiting(lab) == []


def test_a_granted_step_goes_to_the_queue_where_the_caller_has_no_slot(lab: Lab) -> None:
    tasks, (claim,) = run(lab, limited(lab), *"aa")

    lab.one.finish(claim)

    assert lab.states(tasks[1])["a"] == "enqueued"
    assert tasks[1] in {claim["task"] for claim in lab.one.claim()}


def test_steps_of_a_key_get_permits_in_their_order(lab: Lab) -> None:
    tasks, (claim,) = run(lab, limited(lab), *"aaaa")
    order = [claim["task"]]
    for _ in range(3):
        lab.one.finish(claim)
        (claim,) = (each for each in lab.one.claim() if each["name"] == "a")
        order.append(claim["task"])
    lab.one.finish(claim)

    assert order == tasks
    assert permits(lab) == []


def test_a_retry_waits_for_a_permit_again(lab: Lab) -> None:
    tasks, (claim,) = run(lab, limited(lab), *"aa")
    lab.one.advance(retry(claim, delay_ms=0))
    (second,) = lab.one.claim()

    due(lab.one)

    assert second["task"] == tasks[1]
    assert lab.states(tasks[0])["a"] == "pending"
    assert waiting(lab) == [("a", 1)]


def test_a_released_claim_keeps_its_permit(lab: Lab) -> None:
    tasks, (claim,) = run(lab, limited(lab), *"aa")

    lab.one.advance({"s": claim["step"], "t": claim["task"], "k": claim["token"], "kind": "release"})

    assert lab.states(tasks[0])["a"] == "enqueued"
    assert permits(lab) == [("a", 1)]
    assert waiting(lab) == [("a", 1)]


@pytest.mark.parametrize("which", [0, 1])
def test_a_cancel_ends_the_permit_or_the_wait(lab: Lab, which: int) -> None:
    tasks, _ = run(lab, limited(lab), *"aa")

    lab.one.core("cancel", {"task": tasks[which]})
    due(lab.one)

    assert permits(lab) == [("a", 1)]
    assert waiting(lab) == []
    assert lab.states(tasks[1 - which])["a"] == ("enqueued" if which == 0 else "in_progress")


@pytest.mark.parametrize("kind", ["resolve", "complete", "cancel"])
def test_an_operator_ends_a_step_that_has_its_permit_and_is_not_claimed(lab: Lab, kind: str) -> None:
    tasks = submitted(lab, limited(lab), *"aa")

    lab.one.advance(operator(kind, lab.steps(tasks[0])["a"]))

    assert permits(lab) == [("a", 1)]
    assert lab.states(tasks[1])["a"] == "enqueued"


def test_an_operator_ends_a_step_that_waits_for_a_permit(lab: Lab) -> None:
    tasks, _ = run(lab, limited(lab), *"aa")

    lab.one.advance(operator("resolve", lab.steps(tasks[1])["a"]))

    assert waiting(lab) == []
    assert lab.states(tasks[1]) == {"a": "resolved_manually", "b": "enqueued"}


def test_a_permit_lasts_while_its_step_waits_for_room(lab: Lab) -> None:
    lab.window = 1
    tasks = submitted(lab, limited(lab, 2), *"aaa")

    assert [lab.states(task)["a"] for task in tasks] == ["enqueued", "pending", "pending"]
    assert permits(lab) == [("a", 2)]
    assert waiting(lab) == [("a", 1)]


@pytest.mark.parametrize("target", ["namespace", "task"])
def test_a_paused_step_gives_its_turn_to_the_next(lab: Lab, target: str) -> None:
    plan = limited(lab)
    tasks, (claim,) = run(lab, plan, *"aaa")
    what = {"task": tasks[1]} if target == "task" else {"namespace": lab.namespace}
    lab.one.core("pause", {**what, **WHY})

    lab.one.finish(claim)

    assert lab.states(tasks[1])["a"] == "pending"
    assert lab.states(tasks[2])["a"] == ("enqueued" if target == "task" else "pending")
    assert permits(lab) == ([("a", 1)] if target == "task" else [])
    lab.one.core("resume", {**what, **WHY})
    lab.one.call("backlog", lab.one.args())
    due(lab.one)
    lab.one.run_all()
    due(lab.one)
    lab.one.run_all()
    assert {lab.task(task).state for task in tasks} == {"complete"}


def test_a_queued_step_that_is_paused_gives_its_permit_back(lab: Lab) -> None:
    tasks = submitted(lab, limited(lab), *"aa")
    lab.one.core("pause", {"task": tasks[0], **WHY})

    assert lab.one.claim() == []
    due(lab.one)

    assert permits(lab) == [("a", 1)]
    assert [claim["task"] for claim in lab.one.claim()] == [tasks[1]]


def test_a_key_is_read_from_the_result_of_a_step_above(lab: Lab) -> None:
    rule = {"name": "step x", "key": {"step": "a", "path": ["account"]}, "max_running": 1}
    plan = lab.plan(Spec("a"), Spec("b", depends_on=("a",), limits=(rule,)), name="above")
    tasks = lab.submit(plan, {}, {}, {})
    for claim, account in zip(lab.one.claim(), [7, 7, "8"], strict=True):
        lab.one.advance(ok(claim, {"account": account}))

    assert sorted(lab.states(task)["b"] for task in tasks) == ["enqueued", "enqueued", "pending"]
    assert permits(lab) == [("7", 1), ("8", 1)]


@pytest.mark.parametrize("context", [{}, {"customer": None}])
@pytest.mark.parametrize("root", [True, False])
def test_a_step_without_a_value_of_its_key_fails_and_says_where(lab: Lab, context: Any, root: bool) -> None:
    rule = {"name": "step x", "key": CUSTOMER, "max_running": 1}
    above = () if root else (Spec("z"),)
    plan = lab.plan(*above, Spec("a", depends_on=() if root else ("z",), limits=(rule,)), name="keyless")
    (task,) = lab.submit(plan, {"context": context})
    for claim in lab.one.claim():
        lab.one.finish(claim)

    due(lab.one)

    assert lab.states(task)["a"] == "error"
    (error,) = lab.observer.rows("select error from tasker.step_failures")
    assert error[0]["error_type"] == "limit_key_missing"
    assert "input.customer" in error[0]["message"]


def test_a_long_value_of_a_key_is_its_hash(lab: Lab) -> None:
    submitted(lab, limited(lab), "x" * 9000, "x" * 9000)

    ((value, count),) = permits(lab)
    assert value.startswith("sha256:")
    assert count == 1


def test_a_limit_without_a_key_is_one_for_all(lab: Lab) -> None:
    submitted(lab, limited(lab, 2, key=None), *"abc")

    assert permits(lab) == [("", 2)]
    assert waiting(lab) == [("", 1)]


def test_the_newest_version_sets_the_limit_of_all(lab: Lab) -> None:
    plan = limited(lab, 1)
    tasks = submitted(lab, plan, *"aaa")
    newer = replace(
        plan,
        version="1.10.0",
        steps=tuple(
            replace(step, limits=tuple(replace(limit, max_running=2) for limit in step.limits)) for step in plan.steps
        ),
    )
    older = replace(
        newer,
        version="1.9.0",
        steps=tuple(
            replace(step, limits=tuple(replace(limit, max_running=3) for limit in step.limits)) for step in plan.steps
        ),
    )

    register(lab, newer)
    register(lab, older)
    due(lab.one)

    assert permits(lab) == [("a", 2)]
    assert lab.states(tasks[1])["a"] == "enqueued"


def test_a_lowered_limit_takes_no_permit_away_and_grants_none(lab: Lab) -> None:
    tasks, claims = run(lab, limited(lab, 2), *"aaa")
    lab.one.execute("select tasker.set_limit(%s, 1)", f"step {lab.namespace}/limited/a")

    lab.one.finish(claims[0])
    assert permits(lab) == [("a", 1)]
    lab.one.finish(claims[1])

    assert permits(lab) == [("a", 1)]
    assert lab.states(tasks[2])["a"] == "enqueued"


def test_a_delayed_step_with_a_limit_waits_for_its_time_first(lab: Lab) -> None:
    lab.one.set_time(0)
    (task,) = submitted(lab, limited(lab, delay=60), "a")
    assert (permits(lab), waiting(lab)) == ([], [])
    lab.one.set_time(61)

    due(lab.one)

    assert lab.states(task)["a"] == "enqueued"
    assert permits(lab) == [("a", 1)]


def test_a_sweep_grants_what_was_forgotten_and_counts_it(lab: Lab) -> None:
    tasks, (claim,) = run(lab, limited(lab), *"aa")
    lab.one.execute("delete from tasker.limit_permits")

    repaired = repairs(lab)
    due(lab.one)

    assert repaired == {"permit_not_granted": 1}
    assert lab.states(tasks[1])["a"] == "enqueued"
    lab.one.core("cancel", {"task": claim["task"]})  # it runs without the permit that the test took


def test_a_sweep_ends_the_permit_of_a_step_that_has_ended(lab: Lab) -> None:
    tasks, (claim,) = run(lab, limited(lab), *"aa")
    lab.one.execute("update tasker.limit_permits set subject = %s", lab.steps(tasks[0])["b"].workflow_step_uuid)

    repaired = repairs(lab)
    due(lab.one)

    assert repaired == {"permit_of_an_ended_step": 1}
    assert permits(lab) == [("a", 1)]
    lab.one.core("cancel", {"task": claim["task"]})


def test_a_step_that_rests_in_the_backlog_gives_its_permit_back(lab: Lab) -> None:
    lab.window = 1
    tasks = submitted(lab, limited(lab, 2), *"aaa")
    lab.one.core("pause", {"task": tasks[1], **WHY})

    repaired = repairs(lab)
    due(lab.one)

    assert repaired == {}
    assert {str(row[0]) for row in lab.observer.rows("select subject from tasker.limit_permits")} == {
        str(lab.steps(task)["a"].workflow_step_uuid) for task in (tasks[0], tasks[2])
    }


def test_a_step_that_waits_for_a_permit_is_not_stale_while_workers_live(lab: Lab) -> None:
    run(lab, limited(lab), *"aa")
    lab.one.start_worker(lease_ms=48 * 3_600_000)
    lab.one.execute("update tasker.workflow_steps set deadline_at = now() + interval '2 days' where attempts = 1")

    assert search(lab, 23 * 60) == []
