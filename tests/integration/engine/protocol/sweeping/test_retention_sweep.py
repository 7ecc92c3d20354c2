"""With limits configured, sweeps delete what is too old; without any they do not even look."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from tasker.engine.plans import PlanStore
from tasker.orchestration.sweep import Sweeper
from tasker.settings.database import Retention
from tests.integration.engine.fleet.test_retention import ended, left
from tests.integration.engine.protocol.conftest import AT_ONCE, Orchestra

MAY_DELETE = "tasker.services.database.MAY_DELETE"


async def swept(orchestra: Orchestra, rules: Mapping[str, Any] = {}, times: int = 1, **more: Any) -> None:
    """So many sweeps of one process."""
    settings = replace(AT_ONCE, retention=Retention(**{"events_days": 0, **rules, **more}))
    plans = PlanStore(orchestra.engine.connection)
    sweeper = Sweeper(orchestra.engine, orchestra.processor, plans, random.Random(1), settings)
    for _ in range(times):
        await sweeper.sweep(orchestra.caller())


async def test_a_sweep_deletes_what_is_configured_and_one_process_begins_in_each_interval(orchestra: Orchestra) -> None:
    lab, rule = orchestra.lab, {"completed_days": 30}
    ended(lab, 31, 2)

    await swept(orchestra)
    assert len(left(lab)) == 2
    await swept(orchestra, rule)
    assert left(lab) == set()

    later = ended(lab, 31)
    await swept(orchestra, rule, times=2)
    assert left(lab) == {*later}, "the turn of this interval is over"
    await swept(orchestra, rule, interval_seconds=0)
    assert left(lab) == set()


async def test_a_sweep_deletes_so_much_and_goes_on_with_the_next(orchestra: Orchestra) -> None:
    lab, rule = orchestra.lab, {"completed_days": 30}
    ended(lab, 31, 25)

    await swept(orchestra, rule, batch_size=1)
    assert len(left(lab)) == 5
    ended(lab, 31, 20)
    await swept(orchestra, rule, batch_size=1, interval_seconds=0, times=2)
    assert len(left(lab)) == 0


async def test_a_process_whose_role_may_not_delete_leaves_the_turn_to_others(
    orchestra: Orchestra, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab, rule = orchestra.lab, {"completed_days": 30}
    old = ended(lab, 31)

    with monkeypatch.context() as patched:
        patched.setattr(MAY_DELETE, "select false")
        await swept(orchestra, rule)
    assert left(lab) == {*old}
    await swept(orchestra, rule)
    assert left(lab) == set()


async def test_events_that_are_older_than_their_limit_go_and_tasks_stay(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    (task,) = ended(lab, 31)
    write = """insert into tasker.domain_events (created_at, event_uuid, task_uuid, workflow_step_uuid, correlation_id,
      namespace_id, sort_key, number, attempt, name, step_name, outcome, delivery_mode, fired_by, withheld)
      select now() - make_interval(days => n), tasker.uuid_v7(), tasker.uuid_v7(), tasker.uuid_v7(), tasker.uuid_v7(),
        %s, 2, 0, 1, 'a', 'b', 'success', 'durable', 'c', 'd' from generate_series(1, 5) n"""
    lab.one.execute(write, lab.namespace_id)

    await swept(orchestra)
    assert lab.one.value("select count(*) from tasker.domain_events") == 5
    await swept(orchestra, events_days=3.5, batch_size=1)

    assert lab.one.value("select count(*) from tasker.domain_events") == 3
    assert left(lab) == {task}
