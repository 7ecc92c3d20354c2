"""Replays: the failed steps of a whole group run again through the queues, at the rate that was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.engine_fixture import Lab, fail


@pytest.fixture
def alone(lab: Lab) -> Lab:
    return lab


def failed(lab: Lab, fingerprint: str, count: int = 1) -> list[str]:
    """Tasks whose only step failed so."""
    tasks = lab.submit(lab.chain(1), *({} for _ in range(count)))
    error = {"message": "no", "error_type": "E", "fingerprint": fingerprint}
    lab.one.advance(*(fail(claim, e=error) for claim in lab.one.claim()))
    return tasks


def begin(lab: Lab, *, rate: float = 10, **which: Any) -> dict[str, Any]:
    args = {"rate": rate, "actor": "ann", "why": "it is back", "limit": 1000, **which}
    return lab.two.core("replay_plan", args)


def turn(lab: Lab, seconds: float, replay: str | None = None, **more: Any) -> int:
    """How many tasks are replayed by a turn so many seconds after the replay began."""
    moment = "(select max(created_at) from tasker.dlq_replays) + %s * interval '1 second'"
    lab.two.execute(f"select set_config('tasker.now', ({moment})::text, false)", seconds)
    return int(lab.two.call("replay", {"replay": replay, **more}).get("done") or 0)


def states(lab: Lab, tasks: list[str]) -> list[str]:
    return [lab.task(task).state for task in tasks]


def entry(lab: Lab, task: str) -> Any:
    (row,) = lab.observer.rows("select * from tasker.tasks_dlq where task_uuid = %s", task)
    return row


def test_what_a_replay_would_do_is_said_and_not_done(alone: Lab) -> None:
    failed(alone, "f1", 3)
    failed(alone, "f2")

    plan = begin(alone, fingerprint="f1", dry_run=True)

    assert (plan["replay"], plan["tasks"], plan["steps"]) == (None, 3, 3)
    assert plan["templates"] == {f"{alone.namespace}/chain": 3}
    assert not alone.observer.rows("select from tasker.dlq_replays")


def test_tasks_of_the_group_run_again_and_their_entries_are_closed(alone: Lab) -> None:
    ours, others = failed(alone, "f1", 2), failed(alone, "f2", 2)
    replay = begin(alone, fingerprint="f1")["replay"]

    assert turn(alone, 1) == 2
    assert alone.one.run_all() == 2

    assert states(alone, ours) == ["complete", "complete"]
    assert states(alone, others) == ["error", "error"]
    closed = entry(alone, ours[0])
    assert (closed.resolution_status, closed.resolved_by, closed.metadata["replay_uuid"]) == (
        "manually_resolved",
        "ann",
        replay,
    )
    assert entry(alone, others[0]).resolution_status == "pending"
    (row,) = alone.observer.rows("select * from tasker.dlq_replays")
    assert (row.state, row.replayed, row.skipped) == ("complete", 2, 0)


def test_no_more_tasks_are_replayed_than_the_rate_allows_and_lost_time_is_not_made_up_for(alone: Lab) -> None:
    failed(alone, "f1", 30)
    begin(alone, rate=2, fingerprint="f1")

    assert [turn(alone, seconds) for seconds in (0, 0.1, 0.5, 2, 2.2, 100)] == [1, 0, 1, 3, 0, 10]


def test_turn_of_one_replay_leaves_the_others_alone(alone: Lab) -> None:
    """Who follows the later one goes on with that, though the earlier is due for longer."""
    earlier, later = failed(alone, "f1", 2), failed(alone, "f2", 2)
    begin(alone, fingerprint="f1")
    replay = begin(alone, fingerprint="f2")["replay"]

    assert turn(alone, 1, replay) == 2
    assert "error" not in states(alone, later)
    assert states(alone, earlier) == ["error", "error"]
    assert turn(alone, 1, replay) == 0


def test_a_slow_replay_does_not_stand_still(alone: Lab) -> None:
    failed(alone, "f1", 2)
    begin(alone, rate=0.01, fingerprint="f1")

    assert [turn(alone, seconds) for seconds in (0, 99, 101)] == [1, 0, 1]


def test_a_step_that_failed_otherwise_stays_as_it_is(alone: Lab) -> None:
    from tests.support.random_plans import Spec

    task, claims = alone.running(alone.plan(Spec("a"), Spec("b")))
    alone.one.advance(*(fail(claims[name], e={"message": name, "fingerprint": name}) for name in claims))
    begin(alone, fingerprint="a")
    turn(alone, 1)

    assert alone.states(task) == {"a": "enqueued", "b": "error"}


def test_a_task_that_goes_on_already_or_is_held_by_somebody_is_no_obstacle(alone: Lab) -> None:
    mended, held, other = failed(alone, "f1", 3)
    begin(alone, rate=100, fingerprint="f1")
    alone.one.core("retry", {"task": mended, "n": {}})
    with alone.transaction(alone.one):
        alone.one.execute("select from tasker.tasks where task_uuid = %s for update", held)
        assert turn(alone, 1) == 2
    assert states(alone, [other]) != ["error"]

    assert turn(alone, 2) == 1

    (row,) = alone.observer.rows("select * from tasker.dlq_replays")
    assert (row.state, row.replayed, row.skipped) == ("complete", 2, 1)


def test_a_task_that_somebody_holds_keeps_neither_its_replay_waiting_nor_a_younger_one(alone: Lab) -> None:
    held, free = failed(alone, "f1", 2)
    (only,), (other,) = failed(alone, "f2"), failed(alone, "f3")
    for fingerprint in ("f1", "f2", "f3"):
        begin(alone, rate=1, fingerprint=fingerprint)

    with alone.transaction(alone.one):
        alone.one.execute("select from tasker.tasks where task_uuid in (%s, %s) for update", held, only)
        assert [turn(alone, 1) for _ in range(3)] == [1, 0, 1]

    assert states(alone, [held, only]) == ["error", "error"]
    assert "error" not in states(alone, [free, other])


def test_of_wide_tasks_a_turn_takes_few_and_at_least_one(alone: Lab) -> None:
    from tests.support.random_plans import Spec

    alone.submit(alone.plan(*(Spec(f"s{n}") for n in range(3))), {}, {}, {}, {})
    error = {"message": "no", "error_type": "E", "fingerprint": "f1"}
    alone.one.advance(*(fail(claim, e=error) for claim in alone.one.claim()))
    begin(alone, rate=100, fingerprint="f1")

    assert [turn(alone, 1, steps=most) for most in (1, 3, 4, 4)] == [1, 1, 2, 0]


def test_one_that_may_run_only_once_is_left_for_a_person(alone: Lab) -> None:
    from dataclasses import replace

    plan = alone.chain(1)
    task, claims = alone.running(replace(plan, steps=(replace(plan.steps[0], on_worker_lost="fail"),)))
    alone.one.advance(fail(claims["s0"], e={"message": "gone", "error_type": "worker_lost", "fingerprint": "f"}))

    plan_of_it = begin(alone, fingerprint="f")

    assert (plan_of_it["replay"], plan_of_it["tasks"]) == (None, 0)
    assert alone.task(task).state == "error"


def test_a_paused_replay_waits_and_a_second_process_passes_over_what_one_is_at(alone: Lab) -> None:
    failed(alone, "f1", 4)
    begin(alone, rate=1, fingerprint="f1")
    alone.observer.execute("update tasker.dlq_replays set state = 'paused'")
    assert turn(alone, 1) == 0
    alone.observer.execute("update tasker.dlq_replays set state = 'running'")

    with alone.transaction(alone.one):
        alone.one.execute("select from tasker.dlq_replays for update")
        assert turn(alone, 1) == 0
    assert turn(alone, 1) == 2


def test_a_replayed_task_that_fails_again_gets_a_new_entry(alone: Lab) -> None:
    (task,) = failed(alone, "f1")
    begin(alone, fingerprint="f1")
    turn(alone, 1)
    alone.one.advance(fail(alone.one.claim()[0]))

    rows = alone.observer.rows(
        "select resolution_status from tasker.tasks_dlq where task_uuid = %s order by created_at", task
    )
    assert {row.resolution_status for row in rows} == {"manually_resolved", "pending"}
