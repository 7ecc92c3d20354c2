"""Steps that wait for a time of their own: once, from the moment they are ready."""

from __future__ import annotations

from typing import Any

import pytest

from tasker.template.plan import Plan
from tests.integration.engine.protocol.test_delays import HOUR, HOUR_MS, at, delayed, due, timers
from tests.support.engine_fixture import Item, Lab, ok, operator, retry
from tests.support.random_plans import BATCHABLE, DECISION, WORKER, Spec, create_steps


def then(lab: Lab, **gate: Any) -> Plan:
    """A step, one behind it that waits, and one behind that."""
    return lab.plan(Spec("a"), Spec("b", depends_on=("a",), **gate), Spec("c", depends_on=("b",)), name="gated")


def test_a_delay_of_a_step_begins_when_it_becomes_ready(lab: Lab) -> None:
    lab.one.set_time(0)
    task, claims = lab.running(then(lab, delay=60))
    lab.one.set_time(100)

    answer = lab.one.finish(claims["a"], slots=5)

    assert not answer.get("claims")
    assert answer["begins_in_ms"] == 60_000
    assert lab.states(task)["b"] == "pending"
    assert timers(lab) == [("b", 160)]
    assert (lab.task(task).held, lab.task(task).state) == (1, "waiting_for_dependencies")
    lab.one.set_time(161)
    (claim,) = due(lab.one, slots=1)["claims"]
    (last,) = lab.one.finish(claim, slots=1)["claims"]
    assert last["name"] == "c", "a step without a gate is handed off"


def test_a_retry_and_a_reset_do_not_wait_for_the_delay_again(lab: Lab) -> None:
    lab.one.set_time(0)
    task, claims = lab.running(then(lab, delay=60))
    lab.one.finish(claims["a"])
    lab.one.set_time(61)
    (claim,) = due(lab.one, slots=1)["claims"]
    lab.one.advance(retry(claim, delay_ms=0))
    (claim,) = due(lab.one, slots=1)["claims"]
    lab.one.advance({**retry(claim), "kind": "fail", "d": None})

    lab.one.advance(operator("reset", lab.steps(task)["b"]))

    assert lab.states(task)["b"] == "enqueued"
    assert timers(lab) == []


def test_roots_with_and_without_a_delay_start_apart(lab: Lab) -> None:
    lab.one.set_time(0)
    plan = lab.plan(Spec("now"), Spec("later", delay=60), Spec("too"), Spec("last", delay=90), name="roots")

    (task,) = lab.submit(plan, {})

    assert lab.states(task) == {"now": "enqueued", "later": "pending", "too": "enqueued", "last": "pending"}
    assert timers(lab) == [("b", 60), ("b", 90)]
    assert lab.task(task).held == 2
    lab.one.set_time(61)
    assert due(lab.one)["promoted"] == 1
    assert lab.states(task)["later"] == "enqueued"


def test_a_task_of_which_every_root_waits_has_no_claim(lab: Lab) -> None:
    lab.one.set_time(0)

    answer = lab.one.submit(lab.plan(Spec("later", delay=60), name="alone"), {}, **lab.one.args(slots=5))

    assert "claims" not in answer
    assert timers(lab) == [("b", 60)]


def test_the_delay_of_a_root_begins_with_its_delayed_task(lab: Lab) -> None:
    lab.one.set_time(0)
    plan = lab.plan(Spec("now"), Spec("later", delay=60), name="roots")

    lab.submit(plan, {"delay_ms": HOUR_MS})

    assert timers(lab) == [("b", HOUR), ("b", HOUR + 60)]


@pytest.mark.parametrize("where", ["input", "result", "time"])
def test_a_step_waits_for_a_time_in_the_data(lab: Lab, where: str) -> None:
    lab.one.set_time(0)
    moment = at(lab, 500)
    gates: dict[str, Item] = {
        "input": {"input": ["trip", "starts_at"]},
        "result": {"step": "a", "path": ["times", "0"]},
        "time": {"time": moment},
    }
    plan = then(lab, not_before=gates[where])
    (task,) = lab.submit(plan, {"context": {"trip": {"starts_at": moment}}})
    (claim,) = lab.one.claim()

    lab.one.advance(ok(claim, {"times": [moment]}))

    assert timers(lab) == [("b", 500)]
    assert lab.states(task)["b"] == "pending"


def test_a_time_in_the_data_that_has_passed_does_not_delay(lab: Lab) -> None:
    (task,) = lab.submit(then(lab, not_before={"input": ["at"]}), {"context": {"at": "2020-01-01T00:00:00Z"}})
    (claim,) = lab.one.claim()

    lab.one.finish(claim)

    assert lab.states(task)["b"] == "enqueued"


@pytest.mark.parametrize(
    "value", ["soon", "2026-01-01", "2026-01-01T10:00:00", "2026-13-01T00:00:00Z", 1767225600, None, True, {}]
)
@pytest.mark.parametrize("root", [True, False])
def test_no_time_in_the_data_is_a_failure_that_says_where(lab: Lab, value: Any, root: bool) -> None:
    gate = {"input": ["trip", "starts_at"]}
    plan = lab.plan(Spec("b", not_before=gate), name="root") if root else then(lab, not_before=gate)
    (task,) = lab.submit(plan, {"context": {"trip": {"starts_at": value}}})
    if not root:
        lab.one.finish(*lab.one.claim())
    assert lab.states(task)["b"] == "pending"

    due(lab.one)

    assert lab.states(task)["b"] == "error"
    assert lab.task(task).state == "error"
    error = lab.observer.value("select error from tasker.step_failures")
    assert (error["error_type"], error["retryable"]) == ("not_a_time", False)
    assert error["message"] == "not_before: expected a time such as 2026-01-31T18:00:00Z at input.trip.starts_at"
    assert lab.observer.value("select dlq_reason::text from tasker.tasks_dlq") == "permanent_failure"
    assert timers(lab) == []


def test_a_step_that_a_decision_creates_waits_for_its_delay(lab: Lab) -> None:
    lab.one.set_time(0)
    plan = lab.plan(Spec("route", DECISION), Spec("ship", depends_on=("route",), delay=60), name="decides")
    task, claims = lab.running(plan)
    new = [{"name": "ship", "ordinal": 1, "parents": ["route"]}]

    lab.one.advance(ok(claims["route"], create_steps("ship"), x=new, gv=0))

    assert lab.states(task)["ship"] == "pending"
    assert timers(lab) == [("b", 60)]


def test_a_delayed_step_is_not_taken_for_one_that_a_later_decision_created(lab: Lab) -> None:
    """At one moment: the step of the second decision waits for nothing, as that of the first does, but for its time."""
    plan = lab.plan(
        Spec("a"), Spec("one", DECISION), Spec("two", DECISION), Spec("x", depends_on=("one",), delay=60),
        Spec("y", depends_on=("two", "a")), name="decides",
    )  # fmt: skip
    lab.one.execute("select set_config('tasker.now', '2026-01-01Z', false)")
    task, claims = lab.running(plan)
    lab.one.finish(claims["a"])

    for version, (name, new, parent) in enumerate((("one", "x", "one"), ("two", "y", "a"))):
        step = {"name": new, "ordinal": plan.by_name[new].ordinal, "parents": [parent]}
        lab.one.advance(ok(claims[name], create_steps(new), x=[step], gv=version))

    assert lab.states(task) == {"a": "complete", "one": "complete", "two": "complete", "x": "pending", "y": "enqueued"}
    assert lab.task(task).held == 1


def test_each_batch_waits_for_the_delay_of_its_step(lab: Lab) -> None:
    lab.one.set_time(0)
    plan = lab.plan(Spec("cut", BATCHABLE), Spec("work", WORKER, ("cut",), delay=60), name="batches")
    task, claims = lab.running(plan)
    new = [{"name": f"work_{n}", "ordinal": 1, "parents": ["cut"], "batch": True} for n in range(3)]

    lab.one.advance(ok(claims["cut"], {}, x=new, gv=0))

    assert timers(lab) == [("b", 60)] * 3
    assert lab.task(task).held == 3
    lab.one.set_time(61)
    assert due(lab.one)["promoted"] == 3


def test_a_sweep_and_a_repair_leave_what_waits_alone_and_find_a_timer_that_is_lost(lab: Lab) -> None:
    task = delayed(lab)
    lab.one.set_time(30)
    everything = {"limit": 500, "steps": 2000, "idle_grace_ms": 0}
    found = lab.one.core("find_waiting", everything)
    assert not set(found) & {"forgotten", "unpromoted", "unfinished", "orphans"}
    assert lab.one.core("repair", {"every_ms": 0})["repaired"] == {"enqueued_miscounted": 0}

    lab.observer.execute("delete from tasker.timers")
    (forgotten,) = lab.one.core("find_waiting", {**everything, "begin": True})["forgotten"]
    assert forgotten["t"] == task
    lab.one.advance({"s": forgotten["s"], "t": task, "kind": "unhold"})
    lab.one.core("evaluate", {"tasks": [task]})

    assert lab.states(task)["s0"] == "enqueued"


def test_the_history_says_until_when_a_step_waited(lab: Lab) -> None:
    task = delayed(lab)
    lab.one.set_time(HOUR + 1)
    due(lab.one)

    (note,) = lab.observer.rows("select metadata from tasker.step_moves where metadata is not null")

    assert [*note.metadata] == ["waited_until"]
    assert lab.step_paths(task, "s0") == ["pending>enqueued"]
