"""Sweeps are patient with what has only just happened, however long before that something else was waited for."""

from __future__ import annotations

from typing import Any

from tests.support.engine_fixture import Lab, ok, retry


def found(lab: Lab, seconds: float, what: str, **graces: int) -> list[Any]:
    """What a sweep finds in the lab's namespace so many seconds from now."""
    lab.two.set_time(seconds)
    rows = lab.two.core("sweep", {"limit": 1000, **graces}).get(what, [])
    return [row for row in rows if isinstance(row, str) or row["namespace"] == lab.namespace]


def test_hints_of_a_step_that_runs_again_are_looked_for_as_soon_as_those_of_a_new_one(lab: Lab) -> None:
    """It had been hinted often when it waited for its first attempt."""
    lab.submit_one(lab.chain(1))
    lab.observer.execute("update tasker.workflow_steps set hint_count = 9 where namespace_id = %s", lab.namespace_id)
    (claim,) = lab.one.claim()
    lab.one.advance(retry(claim, delay_ms=0))
    lab.one.call("due", lab.one.args())

    looks = [found(lab, seconds, "unhinted", hint_grace_ms=60_000) for seconds in (30, 90)]

    assert [len(look) for look in looks] == [0, 1]


def test_a_result_that_was_parked_just_now_is_not_lost(lab: Lab) -> None:
    """Its step had been enqueued long before."""
    lab.one.set_time(-3600)
    _, claims = lab.running(lab.chain(1))
    lab.one.set_time(0)
    lab.one.core("park", {"worker": lab.one.worker, "items": [ok(claims["s0"])]})

    looks = [found(lab, seconds, "parked", park_grace_ms=60_000) for seconds in (30, 90)]

    assert [len(look) for look in looks] == [0, 1]


def test_a_task_that_was_left_half_way_just_now_may_still_go_on_by_itself(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(1))
    lab.observer.execute("update tasker.tasks set state = 'evaluating_results' where task_uuid = %s", task)

    looks = [task in found(lab, seconds, "unfinished", idle_grace_ms=60_000) for seconds in (30, 90)]

    assert looks == [False, True]
    lab.observer.execute("update tasker.tasks set state = 'steps_in_process' where task_uuid = %s", task)
