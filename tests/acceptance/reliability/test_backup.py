"""A dump that is taken while steps run is a moment from which a fleet goes on."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path
from typing import Any

import pytest

import tasker
from tasker.db.embedded.cluster import find_binaries
from tasker.services.submission.submit import Submission, SubmissionResult
from tests.acceptance.examples.workflow_case import WORKFLOWS
from tests.support.command_line import invoke, write_workflow
from tests.support.fleets.fleet import Fleet
from tests.support.fleets.mixture import CSV
from tests.support.fleets.oracle import Oracle
from tests.support.servers.second_server import programs
from tests.support.worker_settings import worker_settings

pytestmark = [pytest.mark.slow, pytest.mark.servers]
TEMPLATE = """
    name: held
    namespace: backup
    version: 1.0.0
    steps:
      - {name: hold, handler: backup.hold}
      - {name: end, dependencies: [hold], handler: backup.end}
"""
HANDLERS = """
    import asyncio
    from pathlib import Path

    from tasker.step_handler import step_handler

    GO = Path(__file__).with_name("go")


    @step_handler("backup.hold")
    async def hold():
        while not GO.exists():
            await asyncio.sleep(0.01)


    @step_handler("backup.end")
    async def end():
        return {"ended": True}
"""
SETTINGS = worker_settings(concurrency=60, lease_ms=3000)
HELD, IMPORTS = 3, 20


def test_a_dump_that_is_taken_under_load_is_restored_and_every_task_in_it_ends(
    server: Any, database_url: str, tmp_path: Path
) -> None:
    binaries = find_binaries() if server.name == "embedded" else programs() or find_binaries()
    held, dump = write_workflow(tmp_path / "held", TEMPLATE, HANDLERS), tmp_path / "tasker.dump"

    def take() -> None:
        subprocess.run([binaries / "pg_dump", "--format=custom", "--file", dump, database_url], check=True)

    async def load() -> list[str]:
        async with tasker.App(database_url, settings=SETTINGS) as app:
            requests = [Submission(CSV.input, idempotency_key=str(number)) for number in range(IMPORTS)]
            answers = [
                *await app.submit_many(held, [Submission({"number": number}) for number in range(HELD)]),
                *await app.submit_many(WORKFLOWS / CSV.folder, requests),
            ]
            tasks = [answer.task_uuid for answer in answers if isinstance(answer, SubmissionResult)]
            await app.wait(tasks[HELD])
            await asyncio.to_thread(take)
            (held / "go").touch()
            await asyncio.gather(*(app.wait(task) for task in tasks))
            return tasks

    tasks = asyncio.run(load())
    assert len(tasks) == HELD + IMPORTS
    with server.database() as url:
        subprocess.run([binaries / "pg_restore", "--exit-on-error", "--dbname", url, dump], check=True)
        oracle = Oracle(url)
        assert oracle.created() == len(tasks)
        assert 0 < oracle.finished() <= IMPORTS, "it was taken in the middle"
        assert invoke("db", "status", database=url).exit_code == 0
        checked = invoke("db", "check", database=url)
        assert checked.exit_code == 0, checked.output

        fleet = Fleet(url, tmp_path)
        try:
            fleet.worker("worker", str(held), str(WORKFLOWS / CSV.folder))
            oracle.wait_for_the_end(tasks, limit=60)
        finally:
            fleet.stop()
        oracle.check(dict.fromkeys(tasks, "complete"))
        oracle.close()
