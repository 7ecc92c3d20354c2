"""What is set aside for want of a handler is told as before, and fails when its time is over."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tasker.db.sql_files import query
from tasker.engine.plans import PlanStore
from tasker.orchestration.sweep import Sweeper
from tasker.services.tasks.read import REPORT
from tasker.views.tasks import stored_report
from tests.integration.engine.protocol.conftest import Orchestra, at_once
from tests.integration.engine.protocol.unserved.conftest import complete, set_aside, submitted
from tests.support.engine_fixture import Lab
from tests.support.fleets.at_work import AtWork
from tests.support.random_plans import Spec


@pytest.fixture
def lost(lab: Lab) -> list[str]:
    """Three tasks whose step is set aside, and a worker that has refused them."""
    lab.window = 1
    tasks = submitted(lab, "lost", 3)
    AtWork(lab, lab.one, "lost").work()
    assert set_aside(lab) == 3
    return tasks


def asked(lab: Lab, name: str, **params: Any) -> Any:
    text = REPORT if name == "report" else query("tasks", name)
    return lab.observer.connection.execute(text, params).fetchone()


def since(lab: Lab, task: str) -> Any:
    found = lab.observer.rows(
        """select u.since from tasker.unserved_steps u join tasker.workflow_steps s
           using (workflow_step_uuid, claim_token) where s.task_uuid = %s""",
        task,
    )
    return found[0].since if found else None


def test_reports_lists_and_live_views_tell_of_each(lab: Lab, lost: list[str]) -> None:
    for task in lost:
        report, progress = (
            asked(lab, "report", task=task)[0],
            asked(lab, "progress", task=task, since=None, results_queue="")[0],
        )
        assert [step.unserved for step in stored_report(report).steps.values()] == [True]
        assert [step["unserved"] for step in progress["steps"]] == ["noop"]
        assert asked(lab, "list", tasks=[task]).unserved == "noop"


def test_what_waits_for_any_worker_in_an_ordered_namespace_is_told_as_in_a_queue(lab: Lab) -> None:
    """Its steps are in no queue, and nobody has refused them: no worker runs there."""
    (task,) = submitted(lab, "lost", priority=1)

    report, progress = (
        asked(lab, "report", task=task)[0],
        asked(lab, "progress", task=task, since=None, results_queue="")[0],
    )
    assert [step.unserved for step in stored_report(report).steps.values()] == [True]
    assert [step["unserved"] for step in progress["steps"]] == ["noop"]
    assert asked(lab, "list", tasks=[task]).unserved == "noop"


def test_explanations_name_who_refused_it_and_since_when(lab: Lab, lost: list[str]) -> None:
    for task in lost:
        (group,) = lab.observer.core("explain", {"task": task, "step": None, "results_queue": ""})["groups"]
        assert group["reason"] == "unserved"
        assert group["values"]["handlers"] == ["noop"]
        assert group["values"]["refused_since"]


def test_what_happens_lately_counts_all_of_them(lab: Lab, lost: list[str]) -> None:
    found = lab.observer.core("activity", {})["unserved"]

    assert sum(each["steps"] for each in found if each["namespace"] == lab.namespace) == len(lost)


def test_a_held_step_counts_of_those_ahead_of_it_none_that_wait_beside(lab: Lab, lost: list[str]) -> None:
    submitted(lab, "served", 2)
    task = submitted(lab, "served", priority=-1)[0]

    (group,) = lab.observer.core("explain", {"task": task, "step": None, "results_queue": ""})["groups"]

    assert (group["reason"], group["values"]["ahead"]) == ("outranked", 1)


def test_since_when_stays_while_others_come_and_refuse_it_too(lab: Lab, lost: list[str]) -> None:
    first = {task: since(lab, task) for task in lost}
    assert all(first.values())

    lab.two.set_time(100)
    lab.one.set_time(100)
    lab.one.core("worker", {"action": "beat", "worker": lab.one.worker, "lease_ms": 30_000})
    AtWork(lab, lab.two, "lost").work()

    assert set_aside(lab) == 3
    assert {task: since(lab, task) for task in lost} == first


async def test_all_of_them_fail_when_the_time_is_over_and_become_dead_letters(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    lab.window = 1
    tasks = submitted(lab, "lost", 3)
    AtWork(lab, lab.one, "lost").work()
    assert not await orchestra.sweep(), "nothing is amiss before"

    impatient = at_once(unserved_timeout_seconds=0.001)
    plans, chance = PlanStore(orchestra.engine.connection), random.Random(1)
    sweeper = Sweeper(orchestra.engine, orchestra.processor, plans, chance, impatient)
    repairs = await sweeper.sweep(orchestra.caller())

    assert +repairs == {"nobody_serves": 3}
    assert {lab.task(task).state for task in tasks} == {"error"}
    reasons = lab.observer.rows(
        "select dlq_reason::text from tasker.tasks_dlq where task_uuid = any (%s::uuid[])", tasks
    )
    assert {row.dlq_reason for row in reasons} == {"worker_unavailable"}
    assert set_aside(lab) == 0


async def test_a_pause_keeps_them_from_failing(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    tasks = submitted(lab, "lost")
    AtWork(lab, lab.one, "lost").work()
    lab.one.core("pause", {"namespace": lab.namespace, "actor": "ada", "reason": "audit"})

    impatient = at_once(unserved_timeout_seconds=0.001)
    plans, chance = PlanStore(orchestra.engine.connection), random.Random(1)
    await Sweeper(orchestra.engine, orchestra.processor, plans, chance, impatient).sweep(orchestra.caller())

    assert lab.states(tasks[0]) == {"lost": "pending"}


def test_the_history_says_why_it_went_back(lab: Lab, lost: list[str]) -> None:
    rows = lab.observer.rows(
        """select m.metadata->>'reason' as reason from tasker.step_moves m join tasker.workflow_steps s
           using (workflow_step_uuid) where s.task_uuid = %s and m.path = tasker.step_path('enqueued', 'hold')""",
        lost[0],
    )
    assert [row.reason for row in rows] == ["unserved"]


def test_a_task_goes_on_with_its_other_steps(lab: Lab) -> None:
    lab.window = 1
    (task,) = lab.submit(lab.plan(Spec("lost"), Spec("served"), Spec("after", depends_on=("served",))))

    AtWork(lab, lab.one, "lost").work()

    assert lab.states(task) == {"lost": "pending", "served": "complete", "after": "complete"}
    AtWork(lab, lab.two).work()
    assert complete(lab, [task])
