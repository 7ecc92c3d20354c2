"""Steps whose template only a newer release can read wait beside the queue, too, and never fail because of it."""

from __future__ import annotations

import random

from tasker.engine.plans import PlanStore
from tasker.orchestration.sweep import Sweeper
from tests.integration.engine.protocol.conftest import Orchestra, at_once
from tests.integration.engine.protocol.unserved.conftest import complete, set_aside, submitted
from tests.support.engine_fixture import Lab
from tests.support.fleets.at_work import AtWork


def reason(lab: Lab, task: str) -> dict[str, object]:
    (group,) = lab.observer.core("explain", {"task": task, "step": None, "results_queue": ""})["groups"]
    return {"reason": group["reason"], **group["values"]}


async def swept(orchestra: Orchestra) -> dict[str, int]:
    """What a sweep repairs that has no patience with steps that nobody serves."""
    impatient = at_once(unserved_timeout_seconds=0.001)
    plans, chance = PlanStore(orchestra.engine.connection), random.Random(1)
    repairs = await Sweeper(orchestra.engine, orchestra.processor, plans, chance, impatient).sweep(orchestra.caller())
    return dict(+repairs)


def test_they_do_not_fill_a_window_of_one(lab: Lab) -> None:
    lab.window = 1
    later, now = submitted(lab, "later", 3), submitted(lab, "now", 3)

    worker = AtWork(lab, lab.one, "later", old=True).work(rounds=10)

    assert complete(lab, now)
    assert {lab.states(task)["later"] for task in later} == {"pending"}
    assert {lab.steps(task)["later"].attempts for task in later} == {0}
    assert (set_aside(lab), lab.queue_depth()) == (3, 0)
    assert not worker.look(), "nothing is left to do for an idle worker"


def test_all_complete_when_a_worker_comes_that_can_read_them(lab: Lab) -> None:
    lab.window = 2
    later = submitted(lab, "later", 20)
    AtWork(lab, lab.one, "later", old=True).work()
    assert set_aside(lab) == 20

    AtWork(lab, lab.two, slots=5).work(rounds=40)

    assert complete(lab, later)
    assert set_aside(lab) == 0


def test_they_wait_for_a_newer_worker_that_is_there_and_busy(lab: Lab) -> None:
    lab.window = 1
    (task,) = submitted(lab, "later")
    AtWork(lab, lab.two)

    AtWork(lab, lab.one, "later", old=True).work(rounds=3)

    assert (lab.states(task)["later"], set_aside(lab)) == ("enqueued", 0)


async def test_older_workers_alone_fail_none_however_long_it_takes(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    tasks = submitted(lab, "later", 2)
    AtWork(lab, lab.one, "later", old=True).work()

    assert "nobody_serves" not in await swept(orchestra)
    assert {lab.states(task)["later"] for task in tasks} == {"pending"}


async def test_a_newer_worker_without_the_handler_beside_them_fails_it_in_time(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    (task,) = submitted(lab, "later")
    AtWork(lab, lab.one, "later", old=True).work(rounds=1)
    lab.observer.execute(f"update pgmq.q_worker_{lab.namespace}_queue set vt = clock_timestamp()")
    AtWork(lab, lab.two, "later").work()

    assert reason(lab, task)["reason"] == "unserved"
    assert await swept(orchestra) == {"nobody_serves": 1}
    assert lab.states(task) == {"later": "error"}


async def test_a_worker_that_can_read_it_since_it_came_again_and_lacks_the_handler_fails_it(
    orchestra: Orchestra,
) -> None:
    lab = orchestra.lab
    (task,) = submitted(lab, "later")
    AtWork(lab, lab.one, "later", old=True).work()

    AtWork(lab, lab.one, "later").work()

    assert await swept(orchestra) == {"nobody_serves": 1}
    assert lab.states(task) == {"later": "error"}


def test_the_explanation_tells_who_is_too_old_and_since_when(lab: Lab) -> None:
    lab.window = 1
    for task in submitted(lab, "later", 2):
        AtWork(lab, lab.one, "later", old=True).work()
        told = reason(lab, task)
        assert told["reason"] == "unreadable"
        assert told["refused_by"]
        assert told["refused_since"]
