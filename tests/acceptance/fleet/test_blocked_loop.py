"""A handler that blocks the event loop: its worker keeps the lease, and the log names it (rule 12)."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.support.command_line import write_workflow
from tests.support.fleets.fleet import Fleet
from tests.support.fleets.oracle import Oracle
from tests.support.fleets.submitting import submit_folder
from tests.support.waiting import until

pytestmark = pytest.mark.slow

TEMPLATE = """
    name: stuck
    namespace_name: stuck
    version: "1.0.0"
    steps:
      - {name: hog, handler: stuck.hog}
"""
HANDLERS = """
    import time
    from pathlib import Path

    from tasker.handlers.decorators import step_handler


    @step_handler("stuck.hog")
    async def hog():
        while not (Path(__file__).parent / "go").exists():
            time.sleep(0.05)
        return {"done": True}
"""
LEASE = 1


def test_a_handler_that_blocks_the_loop_for_longer_than_the_lease_keeps_its_step_and_is_named(
    database_url: str, fleet: Fleet, oracle: Oracle, tmp_path: Path
) -> None:
    workflow = write_workflow(tmp_path / "stuck", TEMPLATE, HANDLERS)
    fleet.worker("one", str(workflow), lease=LEASE)
    fleet.orchestrator("sweeper")
    task = submit_folder(database_url, workflow)
    blocked = f"""select exists (select from tasker.workflow_steps s join tasker.workers w using (worker_uuid)
      where s.task_uuid = %s and w.beat_at > s.started_at + interval '{3 * LEASE} s' and w.lease_until > now())"""
    with psycopg.connect(database_url, autocommit=True) as connection:
        until(lambda: connection.execute(blocked.encode(), (task,)).fetchone() == (True,), "leases have passed")
    (workflow / "go").touch()

    oracle.wait_for_the_end([task])
    oracle.check({task: "complete"})
    assert not +oracle.repairs()
    assert oracle.failures("worker_lost") == 0
    log = fleet.log("one")
    assert log.count("event_loop_blocked") == 1
    assert f"by handler stuck.hog, step hog of task {task}" in log
    assert "time.sleep(0.05)" in log, "the stack shows the line"
    until(lambda: "event_loop_recovered" in fleet.log("one"), "the end is told")
