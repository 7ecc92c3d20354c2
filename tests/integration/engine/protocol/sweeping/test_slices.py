"""What waits is looked at in slices: each goes on where the last one ended, so whatever is wrong is found in a bounded
number of them; and marks of a pause that are changed in slices are always brought to their end."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from tasker.engine.plans import PlanStore
from tasker.orchestration.sweep import Sweeper
from tasker.services.operators.pauses import Pauses, PauseTarget
from tests.integration.engine.protocol.conftest import AT_ONCE, Orchestra
from tests.support.engine_fixture import Lab

SLICE = 2000
"""So many marks are changed in one transaction, unless a test says otherwise."""
WHY = {"actor": "ops", "reason": "the provider is down"}
FIND = {"limit": 4, "steps": 5, "idle_grace_ms": 0}


FORGET = "delete from tasker.ready_backlog where task_uuid = %(task)s"
HOLD = """insert into tasker.ready_backlog select workflow_step_uuid, task_uuid, namespace_id, 0
  from tasker.workflow_steps where task_uuid = %(task)s and unmet = 0"""
WRONG = {
    "forgotten": (FORGET, HOLD),
    "unpromoted": (
        f"""with steps as (update tasker.workflow_steps set state = 'waiting_for_retry'
          where task_uuid = %(task)s and unmet = 0), held as ({FORGET})
        update tasker.tasks set retrying = 1, held = 0 where task_uuid = %(task)s""",
        f"""with steps as (update tasker.workflow_steps set state = 'pending'
          where task_uuid = %(task)s and unmet = 0), held as ({HOLD})
        update tasker.tasks set retrying = 0, held = 1 where task_uuid = %(task)s""",
    ),
    "unfinished": (
        "update tasker.tasks set state = 'evaluating_results' where task_uuid = %(task)s",
        "update tasker.tasks set state = 'waiting_for_dependencies' where task_uuid = %(task)s",
    ),
}
"""Statements that make a task that waits wrong, and right again, by what a sweep calls it."""


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("which", [0, 10, 19])
def test_what_is_wrong_with_a_task_that_waits_is_found_once_in_each_pass(lab: Lab, kind: str, which: int) -> None:
    """20 tasks of 3 steps in slices of 5 steps or 4 tasks: a pass takes 12 slices and one that finds its end.

    Whoever looks goes on where the one before ended.
    """
    lab.window = 0
    task = lab.submit(lab.chain(3), *({} for _ in range(20)))[which]
    bend, back = WRONG[kind]
    lab.observer.connection.execute(bend.encode(), {"task": task})
    for session in (lab.one, lab.two):
        session.set_time(1)

    slices = [session.core("find_waiting", FIND).get(kind) for _ in range(13) for session in (lab.one, lab.two)]

    assert [row["t"] if isinstance(row, dict) else row for rows in slices for row in rows or ()] == [task, task]
    lab.observer.connection.execute(back.encode(), {"task": task})


async def test_what_a_process_found_and_did_not_repair_is_found_again(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    lab.window = 0
    task = lab.submit_one(lab.chain(1))
    lab.observer.connection.execute(FORGET.encode(), {"task": task})
    lab.one.core("find_waiting", {"idle_grace_ms": 0})

    lab.window = 2000
    assert await orchestra.sweep() == {"not_enqueued": 1}
    lab.observer.execute("update tasker.tasks set held = 0 where task_uuid = %s", task)


async def test_a_whole_sweep_repairs_all_that_waits_at_once(orchestra: Orchestra) -> None:
    """As `tasker db check --repair` does, wherever the slices of others have come to."""
    lab = orchestra.lab
    lab.window = 0
    tasks = lab.submit(lab.chain(1), *({} for _ in range(1100)))
    lab.one.core("find_waiting", {"limit": 5})
    for task in (tasks[0], tasks[-1]):
        lab.observer.connection.execute(FORGET.encode(), {"task": task})
    lab.observer.execute("update tasker.ready_backlog set paused = true where task_uuid = %s", tasks[-2])
    lab.observer.execute("update tasker.tasks set held = 0 where task_uuid = any (%s)", [tasks[0], tasks[-1]])
    sweeper = Sweeper(
        orchestra.engine,
        orchestra.processor,
        PlanStore(orchestra.engine.connection),
        random.Random(1),
        replace(AT_ONCE, whole=True),
    )

    assert +await sweeper.sweep(orchestra.caller()) == {"not_enqueued": 2, "paused_without_a_pause": 1}


def test_of_two_processes_that_look_at_the_same_time_one_reads(lab: Lab) -> None:
    lab.submit_one(lab.chain(1))
    lab.one.core("find_waiting", FIND)

    with lab.transaction(lab.two):
        lab.two.core("find_waiting", FIND)
        assert lab.one.core("find_waiting", FIND) == {}


@pytest.mark.parametrize("which", [0, 10, 19])
def test_held_rows_that_are_wrong_are_repaired_within_one_pass(lab: Lab, which: int) -> None:
    lab.window = 0
    tasks = lab.submit(lab.chain(1), *({} for _ in range(20)))
    lab.observer.execute("update tasker.ready_backlog set paused = true where task_uuid = %s", tasks[which])
    lab.observer.execute(
        """update tasker.workflow_steps set state = 'enqueued', hinted_at = now() where task_uuid = %s""",
        tasks[19 - which],
    )

    repaired = [
        session.core("repair", {"every_ms": 3_600_000, "slice": 6}) for _ in range(2) for session in (lab.one, lab.two)
    ]

    sums = {kind: sum((each.get("repaired") or {}).get(kind, 0) for each in repaired) for kind in (
        "paused_without_a_pause", "held_but_not_ready")}  # fmt: skip
    assert sums == {"paused_without_a_pause": 1, "held_but_not_ready": 1}
    assert lab.observer.value("select sum(repaired) from tasker.repairs where kind <> 'enqueued_miscounted'") == 2


def large(lab: Lab, count: int = 50) -> list[str]:
    """Held steps of a template, and behind them one of another."""
    lab.window = 0
    lab.submit(lab.chain(1, name="slow"), *({} for _ in range(count)))
    quick = lab.submit(lab.chain(1, name="quick"), {})
    lab.window = 10
    return quick


def marked(lab: Lab) -> int:
    return int(lab.observer.value("select count(*) from tasker.ready_backlog where paused"))


async def test_a_pause_of_more_than_a_slice_marks_all_of_it_and_its_end_frees_all_of_it(orchestra: Orchestra) -> None:
    lab, pauses = orchestra.lab, Pauses(orchestra.engine)
    quick = large(lab, SLICE + 50)
    target = PauseTarget.of(template=f"{lab.namespace}/slow")

    assert await pauses.pause(target, actor="ops", reason="")
    assert marked(lab) == SLICE + 50
    assert lab.one.call("backlog", lab.one.args())["released"] == 1
    lab.one.run_all()
    assert lab.task(quick[0]).state == "complete"

    assert await pauses.resume(target, actor="ops") == SLICE + 50
    assert marked(lab) == 0


@pytest.mark.parametrize("target", ["template", "task"])
async def test_what_a_process_that_died_has_not_marked_sweeps_mark_and_free(orchestra: Orchestra, target: str) -> None:
    """Nothing of it starts meanwhile, nothing is called broken, and nothing counts as repaired."""
    lab = orchestra.lab
    quick = large(lab)
    scope = {"template": "slow"}
    if target == "task":
        lab.one.call("pause", {"task": quick[0], **WHY})
        scope = {"task": quick[0]}
    answer = lab.one.call("pause", {"namespace": lab.namespace, "template": "slow", "slice": 20, **WHY})
    assert (answer["more"], marked(lab)) == (True, 20 + (target == "task"))

    assert not lab.observer.rows("select * from tasker.violations_v1('{}')")
    assert not await orchestra.sweep()
    assert marked(lab) == 50 + (target == "task")

    answer = lab.one.call("resume", {"namespace": lab.namespace, "template": "slow", "slice": 20, **WHY})
    assert (answer["held"], answer["more"]) == (20, True)
    lab.one.call("resume", {"namespace": lab.namespace, **scope, **WHY})
    assert not lab.observer.rows("select * from tasker.violations_v1('{}')")
    assert not await orchestra.sweep()
    assert marked(lab) == 0
    assert lab.one.call("backlog", lab.one.args())["released"] == 10


def test_what_is_not_marked_yet_is_not_released(lab: Lab) -> None:
    large(lab)
    lab.one.call("pause", {"namespace": lab.namespace, "template": "slow", **WHY})
    lab.observer.execute("update tasker.ready_backlog set paused = false")

    lab.one.call("backlog", lab.one.args())

    assert lab.queue_depth() == 0
    assert marked(lab) == 10, "each that is met is marked"
