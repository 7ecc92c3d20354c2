"""What is read for `/metrics`: how old what waits and what runs is, of a bounded part of the tasks."""

from __future__ import annotations

import pytest

from tasker.db.sql_files import query
from tests.support.children import FanOut
from tests.support.engine_fixture import Item, Lab, retry
from tests.support.random_plans import Spec

READ = "select sum(seq_tup_read + idx_tup_fetch) from pg_stat_xact_user_tables where relname = 'workflow_steps'"
STEPS = """insert into tasker.workflow_steps select (jsonb_populate_record(s, jsonb_build_object(
  'workflow_step_uuid', gen_random_uuid(), 'name', 'more_' || n))).*
  from tasker.workflow_steps s, generate_series(1, %s) n where s.name = 's0'"""
MANY, MOST = 30_000, 20_000


def counted(lab: Lab) -> dict[str, float]:
    """The numbers by metric, of the namespace of the test."""
    rows = lab.two.connection.execute(query("fleet", "counted")).fetchall()
    return {row.name: row.number for row in rows if row.value == lab.namespace}


def checkpoint(lab: Lab, claim: Item) -> None:
    lab.one.core("checkpoint", {"worker": claim["worker"], "step": claim["step"], "token": claim["token"], "cursor": 7})


def test_a_step_that_runs_is_as_old_as_its_last_checkpoint(lab: Lab) -> None:
    _, claims = lab.running(lab.chain())
    lab.two.set_time(100)
    assert "tasker_checkpoint_age_seconds" not in counted(lab)
    lab.one.set_time(40)
    checkpoint(lab, claims["s0"])
    assert counted(lab)["tasker_checkpoint_age_seconds"] == pytest.approx(60, abs=5)


def test_a_step_that_goes_on_from_a_checkpoint_is_not_older_than_its_attempt(lab: Lab) -> None:
    task, claims = lab.running(lab.chain())
    checkpoint(lab, claims["s0"])
    lab.one.advance(retry(claims["s0"], delay_ms=0))
    lab.two.set_time(100)
    assert "tasker_checkpoint_age_seconds" not in counted(lab), "it does not run"
    lab.one.set_time(70)
    lab.one.call("due", lab.one.args())
    lab.running_claims(task)
    assert counted(lab)["tasker_checkpoint_age_seconds"] == pytest.approx(30, abs=5)


def test_of_tasks_with_however_many_steps_no_more_than_a_part_is_read(lab: Lab) -> None:
    lab.submit_one(lab.chain())
    with lab.two.connection.transaction(force_rollback=True):
        lab.two.execute(STEPS, MANY)
        lab.two.execute("analyze tasker.workflow_steps")
        before = int(lab.two.value(READ) or 0)
        assert "tasker_queue_age_seconds" in counted(lab)
        read = int(lab.two.value(READ)) - before
    assert MOST <= read < MOST + 100


def timers(lab: Lab) -> dict[tuple[str, str], float]:
    rows = lab.two.connection.execute(query("fleet", "counted")).fetchall()
    return {(row.name, row.value): row.number for row in rows if row.name.startswith("tasker_timers")}


def test_what_waits_for_a_time_is_counted_by_kind_and_what_is_late_by_seconds(lab: Lab) -> None:
    lab.one.set_time(0)
    lab.submit(lab.chain(), {"delay_ms": 60_000}, {"delay_ms": 120_000, "expires_ms": 1_000})
    _, claims = lab.running(lab.chain(), deadline_ms=60_000)
    lab.one.advance(retry(claims["s0"], delay_ms=30_000))
    lab.two.set_time(0)
    assert timers(lab) == {
        ("tasker_timers_waiting", kind): number for kind, number in (("begin", 2), ("retry", 1), ("deadline", 1))
    }
    lab.two.set_time(100)

    assert timers(lab)["tasker_timers_late_seconds", "begin"] == pytest.approx(40, abs=1)
    assert timers(lab)["tasker_timers_late_seconds", "retry"] == pytest.approx(70, abs=1)
    assert timers(lab)["tasker_timers_late_seconds", "deadline"] == pytest.approx(40, abs=1)


def test_steps_that_wait_without_a_worker_are_counted_by_kind(lab: Lab) -> None:
    waits = {"on": "time", "for_seconds": 60}, {"on": "event", "events": [{"event": "x", "key": None}]}
    lab.submit(lab.plan(*(Spec(str(n), wait=wait) for n, wait in enumerate(waits))), {}, {})
    lab.one.call("due", lab.one.args())
    event = {"namespace": lab.namespace, "name": "x", "payload": {}, "by": "test", "keep_ms": 1000}
    lab.one.core("send_event", event)

    rows = lab.two.connection.execute(query("fleet", "counted")).fetchall()

    found = {(row.name, row.value): row.number for row in rows}
    assert found["tasker_steps_suspended", "time"] == found["tasker_steps_suspended", "event"] == 2
    assert found["tasker_timers_waiting", "wait"] == 2
    assert found["tasker_incoming_events_unrouted", lab.namespace] == 1


def test_open_fan_outs_and_their_children_are_counted_by_state(lab: Lab) -> None:
    fan_out = FanOut(lab, 4, max_parallel=2)
    fan_out.start()
    lab.one.finish(lab.one.claim(1)[0])
    fan_out.gather()

    rows = lab.two.connection.execute(query("fleet", "counted")).fetchall()

    found = {(row.name, row.value): row.number for row in rows}
    assert found["tasker_steps_suspended", "task"] == found["tasker_fan_outs_open", None] == 1
    states = {"waiting": 2, "running": 1, "succeeded": 1, "failed": 0}
    assert {state: found["tasker_child_tasks", state] for state in states} == states


def test_the_age_of_the_queue_is_seen_behind_hundreds_of_delayed_tasks(lab: Lab) -> None:
    lab.submit(lab.chain(), *({"delay_ms": 3_600_000} for _ in range(210)))
    lab.submit_one(lab.chain())
    lab.two.set_time(50)

    assert counted(lab)["tasker_queue_age_seconds"] == pytest.approx(50, abs=5)
