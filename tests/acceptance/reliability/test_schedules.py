"""Schedules on orchestrators that are killed around each fire, with clocks that differ: one task for each fire time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tasker
from tasker.template import compile_text
from tests.support import clocks
from tests.support.fleets.fleet import Fleet
from tests.support.fleets.oracle import Oracle
from tests.support.waiting import until

TEMPLATE = """
name: tick
namespace: clock
version: 1.0.0
schedules: [{name: each_second, every: 1s, missed_fire: all, overlap: allow, context_from: {at: fire_time}}]
steps: [{name: only, handler: none}]
"""

pytestmark = pytest.mark.slow

KEEPER = """select w.pid from tasker.turns t join tasker.workers w on w.worker_uuid = t.holder
  where t.kind = 'timers' and w.stopped_at is null"""

FIRED = "select count(*) from tasker.schedule_fires where outcome = 'fired'"

GAPS = """select fire_at
  from (select fire_at, lag(fire_at) over (order by fire_at) as before from tasker.schedule_fires) f
  where fire_at - before <> interval '1 second'"""

TWICE = """select context->>'at' from tasker.task_details group by 1 having count(*) > 1"""

WITHOUT = """select f.fire_at from tasker.schedule_fires f left join tasker.task_details d on d.task_uuid = f.task_uuid
  where f.outcome <> 'fired' or (d.context->>'at')::timestamptz is distinct from f.fire_at"""


@pytest.mark.servers
@pytest.mark.timeout(1800)  # a hundred kills, each with some seconds until another process keeps the time
@pytest.mark.parametrize("server", ["embedded"], indirect=True)
@pytest.mark.parametrize("kills", [6, pytest.param(100, marks=pytest.mark.long)])
def test_each_fire_time_has_one_task_whichever_timekeeper_is_killed(
    database_url: str, new_fleet: Callable[..., Fleet], oracle: Oracle, kills: int
) -> None:
    fleet = new_fleet()
    fleet.orchestrator("behind", environment=clocks.wrong_by("-120"))
    fleet.orchestrator("right")
    with tasker.SyncApp(database_url, work=False) as app:
        app.plans.register(compile_text(TEMPLATE).plans[0])

    def fired() -> int:
        ((number,),) = oracle.rows(FIRED)
        return int(number)

    def keepers() -> list[str]:
        holder = [pid for (pid,) in oracle.rows(KEEPER)]
        return [name for name, process in fleet.processes.items() if process.pid in holder and process.poll() is None]

    for _ in range(kills):
        before = fired()
        until(lambda before=before: fired() > before, "it fires")  # type: ignore[misc]
        until(lambda: bool(keepers()), "a process that lives keeps the time")
        (keeper,) = keepers()
        fleet.kill(keeper)
        fleet.restart(keeper)
    before = fired()
    until(lambda: fired() > before + 1, "it fires after the last kill")
    with tasker.SyncApp(database_url, work=False) as app:
        app.schedules.pause("clock/tick/each_second")

    assert fired() >= kills
    assert oracle.rows(GAPS) == []
    assert oracle.rows(TWICE) == []
    assert oracle.rows(WITHOUT) == []
