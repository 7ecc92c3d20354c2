"""Tasks and steps that wait for a time: they begin then and not before, and nothing else looks at them meanwhile."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tasker.template.plan import Plan
from tests.support.engine_fixture import Item, Lab, Session, operator, retry
from tests.support.random_plans import Spec

HOUR = 3600
HOUR_MS = HOUR * 1000
WHY = {"actor": "ops", "reason": "the provider is down"}


def due(session: Session, **more: Any) -> dict[str, Any]:
    return session.call("due", session.args(**more))


def timers(lab: Lab) -> list[tuple[str, float]]:
    """The kinds of all timers, and in how many seconds they are due."""
    query = "select kind::text, round(extract(epoch from due_at - now())) from tasker.timers order by due_at, subject"
    return [(kind, float(seconds)) for kind, seconds in lab.observer.rows(query)]


def at(lab: Lab, seconds: float) -> str:
    now = lab.one.value("select tasker.now()")
    return (now + timedelta(seconds=seconds)).isoformat()


def delayed(lab: Lab, plan: Plan | None = None, seconds: float = HOUR, **entry: Any) -> str:
    lab.one.set_time(0)
    (task,) = lab.submit(plan or lab.chain(2), {"delay_ms": seconds * 1000, **entry})
    return task


def test_a_delayed_task_begins_at_its_time_and_not_before(lab: Lab) -> None:
    task = delayed(lab)

    assert lab.task(task).state == "waiting_for_dependencies"
    assert lab.task(task).held == 1
    assert lab.states(task) == {"s0": "pending", "s1": "pending"}
    assert lab.one.claim() == []
    assert timers(lab) == [("b", HOUR)]
    lab.one.set_time(HOUR - 1)
    assert not due(lab.one).get("promoted")
    lab.one.set_time(HOUR + 1)
    assert due(lab.one)["promoted"] == 1

    assert lab.states(task)["s0"] == "enqueued"
    assert timers(lab) == []
    lab.one.run_all()
    assert lab.task(task).state == "complete"


def test_a_time_of_day_counts_whatever_its_zone(lab: Lab) -> None:
    lab.one.set_time(0)
    now: datetime = lab.one.value("select tasker.now()")
    lab.submit(lab.chain(1), {"run_at": (now.astimezone(UTC) + timedelta(hours=2)).isoformat()})

    assert timers(lab) == [("b", 2 * HOUR)]


@pytest.mark.parametrize("entry", [{"run_at": "2020-01-01T00:00:00Z"}, {"delay_ms": 0}])
def test_a_time_that_has_passed_does_not_delay(lab: Lab, entry: Item) -> None:
    (task,) = lab.submit(lab.chain(1), entry)

    assert lab.states(task) == {"s0": "enqueued"}
    assert lab.task(task).run_at is None


def test_tasks_with_and_without_a_time_are_submitted_together(lab: Lab) -> None:
    lab.one.set_time(0)
    plan = lab.plan(Spec("a"), Spec("b"), name="two")
    tasks = lab.submit(plan, {"delay_ms": HOUR_MS, "priority": 9}, {}, {"delay_ms": 2 * HOUR_MS}, {})

    states = [[*lab.states(task).values()] for task in tasks]

    assert sorted(states) == [["pending"] * 2] * 4
    assert timers(lab) == [("b", HOUR)] * 2 + [("b", 2 * HOUR)] * 2
    assert len(lab.one.take()) == 4


@pytest.mark.parametrize("window", [0, 1, 3])
def test_only_what_may_begin_takes_room_in_the_queue_or_the_backlog(lab: Lab, window: int) -> None:
    lab.window = window
    lab.one.set_time(0)
    lab.submit(lab.chain(1), *({"delay_ms": HOUR_MS} for _ in range(3)), {}, {})

    assert lab.queue_depth() == min(2, window)
    assert lab.observer.value("select count(*) from tasker.ready_backlog") == 2 - min(2, window)
    assert len(timers(lab)) == 3


def test_a_worker_in_the_submitting_process_claims_only_what_may_begin(lab: Lab) -> None:
    lab.one.set_time(0)

    answer = lab.one.submit(lab.chain(1), {"delay_ms": HOUR_MS}, **lab.one.args(slots=5))

    assert "claims" not in answer
    assert timers(lab) == [("b", HOUR)]


def test_a_due_task_is_handed_to_a_timekeeper_with_free_slots(lab: Lab) -> None:
    task = delayed(lab, lab.plan(Spec("a"), Spec("b"), name="two"))
    lab.one.set_time(HOUR + 1)

    claims = due(lab.one, slots=1)["claims"]

    assert len(claims) == 1
    assert sorted(lab.states(task).values()) == ["enqueued", "in_progress"]


def test_a_due_task_that_finds_no_room_waits_with_the_age_of_that_moment(lab: Lab) -> None:
    """A task of last week that begins now does not pass those that have waited for room since yesterday."""
    first = delayed(lab, seconds=HOUR)
    lab.window = 0
    lab.one.set_time(HOUR / 2)
    (second,) = lab.submit(lab.chain(2), {})
    lab.one.set_time(HOUR + 1)
    assert due(lab.one)["promoted"] == 1
    assert lab.task(first).held == 1

    query = "select task_uuid::text from tasker.ready_backlog order by rank"

    assert [task for (task,) in lab.observer.rows(query)] == [second, first]


def test_a_delayed_task_can_be_cancelled(lab: Lab) -> None:
    task = delayed(lab)

    answer = lab.one.call("cancel", {"task": task, "reason": "not needed", "actor": "ann"})

    assert answer["cancelled"]
    assert set(lab.states(task).values()) == {"cancelled"}
    assert timers(lab) == []


@pytest.mark.parametrize(("kind", "state"), [("complete", "complete"), ("resolve", "resolved_manually")])
def test_an_operator_ends_a_delayed_step_at_once(lab: Lab, kind: str, state: str) -> None:
    task = delayed(lab)

    lab.one.advance(operator(kind, lab.steps(task)["s0"]))

    assert lab.states(task) == {"s0": state, "s1": "enqueued"}
    assert timers(lab) == []
    assert lab.task(task).held == 0


@pytest.mark.parametrize("target", ["namespace", "template", "step", "task"])
def test_what_is_due_in_a_pause_waits_for_its_end(lab: Lab, target: str) -> None:
    task = delayed(lab)
    which = {"template": {"template": "chain"}, "step": {"template": "chain", "step": "s0"}, "task": {"task": task}}
    pause = {"namespace": lab.namespace, **which.get(target, {}), **WHY}
    if target == "task":
        pause.pop("namespace")
    assert lab.one.core("pause", pause)["paused"]
    assert timers(lab) == [("b", HOUR)], "a pause does not touch what waits for its time"
    lab.one.set_time(HOUR + 1)
    assert due(lab.one)["promoted"] == 1
    assert lab.states(task)["s0"] == "pending"
    assert timers(lab) == []

    lab.one.core("resume", pause)
    lab.one.call("backlog", lab.one.args())

    assert lab.states(task)["s0"] == "enqueued"


def test_the_end_of_a_pause_does_not_start_what_waits_for_its_time(lab: Lab) -> None:
    task = delayed(lab)
    pause = {"namespace": lab.namespace, "template": "chain", **WHY}
    lab.one.core("pause", pause)

    assert lab.one.core("resume", pause)["resumed"]
    lab.one.call("backlog", lab.one.args())

    assert lab.states(task)["s0"] == "pending"


def test_delayed_work_is_neither_depth_nor_demand(lab: Lab) -> None:
    lab.one.set_time(0)
    lab.submit(lab.chain(1), *({"delay_ms": HOUR_MS} for _ in range(5)))

    depth = lab.one.core("depth", {"namespace": lab.namespace})
    (scaling,) = lab.one.core("scaling", {"namespaces": [lab.namespace]})["namespaces"]

    assert (depth["enqueued"], depth["held"], depth["paused"]) == (0, 0, 0)
    assert scaling["depth"] == 0


def test_a_timekeeper_is_told_of_what_begins_sooner_than_it_looks(lab: Lab) -> None:
    lab.observer.execute("listen tasker_timers")
    lab.submit(lab.chain(1), {"delay_ms": HOUR_MS})
    lab.observer.execute("select 1")
    assert not list(lab.observer.connection.notifies(timeout=0))

    with lab.transaction(lab.one):
        lab.submit(lab.chain(1), {"delay_ms": 400})
        assert not list(lab.observer.connection.notifies(timeout=0)), "not before the commit"
    (heard,) = lab.observer.connection.notifies(timeout=5, stop_after=1)

    assert 0 < int(heard.payload) <= 400


# --- expiry -----------------------------------------------------------------------------------------------------------


def test_a_task_that_nobody_has_begun_expires(lab: Lab) -> None:
    lab.one.set_time(0)
    (task,), (other,) = (lab.submit(lab.chain(2), {"expires_ms": ms}) for ms in (60_000, 120_000))
    assert timers(lab) == [("x", 60), ("x", 120)]
    lab.one.set_time(61)

    answer = due(lab.one)

    assert (answer["promoted"], answer["finished"]) == (1, {task: "cancelled"})
    assert set(lab.states(task).values()) == {"cancelled"}
    assert lab.observer.value("select cancel_reason from tasker.task_details where task_uuid = %s", task) == "expired"
    assert lab.task(other).state == "steps_in_process"
    assert timers(lab) == [("x", 120)]
    assert lab.queue_depth() == 2, "a dead message, which the next claim throws away"
    assert [claim["task"] for claim in lab.one.claim()] == [other]


def test_a_task_that_was_begun_does_not_expire(lab: Lab) -> None:
    lab.one.set_time(0)
    (task,) = lab.submit(lab.chain(2), {"expires_ms": 60_000})
    (claim,) = lab.one.claim()
    lab.one.advance(retry(claim, delay_ms=600_000))
    lab.one.set_time(61)

    assert not due(lab.one).get("finished")

    assert lab.states(task)["s0"] == "waiting_for_retry"
    assert timers(lab) == [("r", 600)]


def test_an_expiry_begins_with_the_start_of_a_delayed_task(lab: Lab) -> None:
    task = delayed(lab, expires_ms=60_000)
    assert timers(lab) == [("b", HOUR), ("x", HOUR + 60)]
    lab.window = 0
    lab.one.set_time(HOUR + 1)
    due(lab.one)
    lab.one.set_time(HOUR + 61)

    due(lab.one)

    assert lab.task(task).state == "cancelled"
    assert timers(lab) == []
    assert not lab.observer.rows("select from tasker.ready_backlog")


@pytest.mark.parametrize("end", ["cancel", "complete"])
def test_an_expiry_of_a_task_that_has_ended_does_nothing(lab: Lab, end: str) -> None:
    lab.one.set_time(0)
    (task,) = lab.submit(lab.chain(1), {"expires_ms": 60_000})
    if end == "cancel":
        lab.one.call("cancel", {"task": task, "reason": "", "actor": ""})
        assert timers(lab) == []
    else:
        lab.one.run_all()
    state = lab.task(task).state
    lab.one.set_time(61)

    assert not due(lab.one).get("finished")

    assert lab.task(task).state == state
    assert timers(lab) == []


def test_a_claim_and_an_expiry_at_one_moment_leave_the_task_to_one_of_them(lab: Lab) -> None:
    lab.one.set_time(0)
    (task,) = lab.submit(lab.chain(1), {"expires_ms": 60_000})
    lab.two.set_time(61)

    with lab.transaction(lab.one):
        (claim,) = lab.one.claim()
        waiting = lab.later(due, lab.two)
        lab.waits(waiting, lab.two, lab.one)
    assert not waiting.result().get("finished")

    assert lab.states(task) == {"s0": "in_progress"}
    lab.one.finish(claim)
    assert lab.task(task).state == "complete"


def test_a_task_whose_time_has_come_passes_none_that_waits_for_room(lab: Lab) -> None:
    """While others are held, half of the window is theirs."""
    lab.one.set_time(0)
    lab.submit(lab.chain(1, name="later"), *({"delay_ms": 60_000} for _ in range(4)))
    lab.window = 4
    lab.submit(lab.chain(1), *({} for _ in range(6)))
    assert lab.queue_depth() == 4
    lab.one.finish(*lab.one.claim(4))
    lab.one.set_time(61)

    due(lab.one)

    assert lab.queue_depth() == 2
