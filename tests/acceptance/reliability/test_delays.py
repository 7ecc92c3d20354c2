"""Delayed tasks on a fleet whose timekeeper is killed: each begins once, not before its time, and none is forgotten."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

import tasker
from tasker.services.submission.submit import Submission
from tests.acceptance.examples.workflow_case import WORKFLOWS
from tests.support.fleets.fleet import Fleet
from tests.support.fleets.oracle import Oracle
from tests.support.waiting import until

LINEAR = WORKFLOWS / "linear_math"
TASKS = 60

pytestmark = pytest.mark.slow

KEEPER = """select w.pid from tasker.turns t join tasker.workers w on w.worker_uuid = t.holder
  where t.kind = 'timers' and w.stopped_at is null"""

EARLY = """select t.task_uuid from tasker.tasks t where exists (select from tasker.step_moves m
  where m.workflow_step_uuid between t.task_uuid and tasker.step_uuid(t.task_uuid, 16777215)
    and m.path like '%I%' and m.created_at < t.run_at)"""

TWICE = """select m.workflow_step_uuid from tasker.step_moves m where m.path like 'P%E%'
  group by m.workflow_step_uuid having count(*) > 1"""


@pytest.mark.servers
@pytest.mark.parametrize("server", ["embedded"], indirect=True)
def test_delayed_tasks_survive_every_timekeeper_that_is_killed(
    database_url: str, new_fleet: Callable[..., Fleet], oracle: Oracle
) -> None:
    fleet = new_fleet()
    for name in ("one", "two"):
        fleet.worker(name, str(LINEAR), "--concurrency", "4", lease=3)
    with tasker.SyncApp(database_url, work=False) as app:
        until(lambda: len(oracle.rows("select from tasker.named_tasks")) > 0, "the template is registered")
        plan = app.plans.find("linear", "linear_workflow", None).plan
        app.submit_many(plan, [Submission({"value": n}, delay=0.2 * n) for n in range(TASKS)])

    def keepers() -> list[str]:
        holder = [pid for (pid,) in oracle.rows(KEEPER)]
        return [name for name, process in fleet.processes.items() if process.pid in holder and process.poll() is None]

    for begun in (TASKS // 8, TASKS // 4, TASKS // 2):
        until(partial(lambda least: oracle.finished() > least, begun), "tasks begin")
        until(lambda: bool(keepers()), "a process that lives keeps the time")
        (keeper,) = keepers()
        fleet.kill(keeper)
        fleet.restart(keeper)
    until(lambda: oracle.finished() == TASKS, "all tasks have ended")

    assert oracle.rows("select distinct state from tasker.tasks") == [("complete",)]
    assert oracle.rows(EARLY) == []
    assert oracle.rows(TWICE) == []
    assert oracle.rows("select from tasker.timers") == []
    assert "not_promoted" not in dict(+oracle.repairs())
    oracle.check_promises()
