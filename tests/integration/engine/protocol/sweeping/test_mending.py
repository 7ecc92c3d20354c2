"""Rule 13, beyond the open tasks: marks, held steps and counters that differ from the rows are repaired and counted."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.integration.engine.protocol.conftest import Orchestra
from tests.support.engine_fixture import Lab, fail


def mark(lab: Lab) -> None:
    lab.observer.execute("update tasker.ready_backlog set paused = true")


def count_too_many(lab: Lab) -> None:
    lab.observer.execute("update tasker.enqueue_counters set enqueued = enqueued + 5")


def count_too_few(lab: Lab) -> None:
    lab.observer.execute("update tasker.enqueue_counters set enqueued = enqueued - 3")


def lose_counters(lab: Lab) -> None:
    lab.observer.execute("delete from tasker.enqueue_counters")


def hold(lab: Lab, state: str = "enqueued") -> None:
    lab.observer.execute(
        """insert into tasker.ready_backlog select workflow_step_uuid, task_uuid, namespace_id, 0
           from tasker.workflow_steps where state = %s""",
        state,
    )


def hold_what_was_never_made(lab: Lab) -> None:
    lab.observer.execute(
        """insert into tasker.ready_backlog values
           ('01900000-0000-7000-8000-000000000001', '01900000-0000-7000-8000-000000000000', %s, 0)""",
        lab.namespace_id,
    )


@pytest.mark.parametrize(
    ("harm", "repairs", "rule"),
    [
        (mark, {"paused_without_a_pause": 2}, "marked as paused, but no pause applies"),
        (count_too_many, {"enqueued_miscounted": 1}, "counter of enqueued steps differs"),
        (count_too_few, {"enqueued_miscounted": 1}, "counter of enqueued steps differs"),
        (lose_counters, {"enqueued_miscounted": 1}, "counter of enqueued steps differs"),
        (hold, {"held_but_not_ready": 2}, "in the backlog, but not ready"),
        (hold_what_was_never_made, {"held_but_not_ready": 1}, "in the backlog, but not ready"),
    ],
)
async def test_what_differs_from_the_rows_is_a_broken_promise_and_is_repaired_once(
    orchestra: Orchestra, harm: Callable[[Lab], None], repairs: dict[str, int], rule: str
) -> None:
    """Two steps are enqueued, two are held."""
    lab = orchestra.lab
    lab.window = 2
    tasks = lab.submit(lab.chain(1), *({} for _ in range(4)))
    harm(lab)
    assert rule in {row.rule for row in lab.observer.rows("select rule from tasker.violations_v1('{}')")}

    assert await orchestra.sweep() == repairs
    assert not await orchestra.sweep()

    assert not lab.observer.rows("select * from tasker.violations_v1('{}')")
    counted = {row.kind: row.repaired for row in lab.observer.rows("select kind, repaired from tasker.repairs")}
    assert counted == repairs
    while lab.one.run_all() or lab.one.call("backlog", lab.one.args()).get("released"):
        pass
    assert {lab.task(task).state for task in tasks} == {"complete"}


async def test_held_steps_that_are_none_do_not_stand_in_the_way_of_the_others(orchestra: Orchestra) -> None:
    """They have the best rank, and there are as many as are released at once."""
    lab = orchestra.lab
    lab.window = 3
    lab.submit(lab.chain(1), *({} for _ in range(8)))
    hold(lab)
    lab.one.run_all()

    await orchestra.sweep()

    assert lab.one.call("backlog", lab.one.args())["released"] == 3


async def test_a_task_that_only_a_step_held_by_mistake_kept_open_ends(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    task, claims = lab.running(lab.chain(1))
    hold(lab, "in_progress")
    lab.observer.execute("update tasker.tasks set held = held + 1")
    lab.one.advance(fail(claims["s0"]))
    assert not lab.task(task).complete

    assert await orchestra.sweep() == {"held_but_not_ready": 1}
    assert [each.finished for each in orchestra.advanced if each.finished] == [{task: "error"}]
    assert (lab.task(task).held, lab.task(task).state) == (0, "error")


async def test_namespaces_are_looked_at_once_in_a_while_by_one_process(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    lab.submit_one(lab.chain(1))
    assert lab.one.core("repair", {"every_ms": 60_000})["repaired"]
    count_too_many(lab)

    assert lab.one.core("repair", {"every_ms": 60_000}) == {}
    with lab.transaction(lab.two):
        lab.two.core("repair", {"every_ms": 0})
        assert lab.one.core("repair", {"every_ms": 0}) == {}, "somebody else is at it"


async def test_counting_again_beside_a_write_that_is_not_committed_counts_it_once(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    lab.submit(lab.chain(1), *({} for _ in range(3)))
    count_too_many(lab)

    with lab.transaction(lab.two):
        lab.two.submit(lab.chain(1), {}, {})
        assert await orchestra.sweep() == {"enqueued_miscounted": 1}

    assert not lab.observer.rows("select * from tasker.violations_v1('{}')")
    assert lab.one.run_all() == 5
