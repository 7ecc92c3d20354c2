"""A step that ends every process that runs it takes its neighbours' attempts twice, and not a third time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import tasker
from tests.support.fleets.fleet import Fleet
from tests.support.fleets.oracle import Oracle

pytestmark = pytest.mark.slow

NEIGHBOURS = 6
STEP = "{{name: {name}, handler: {handler}, retry: {{max_attempts: {attempts}, backoff: fixed, backoff_base_ms: 50}}}}"
HANDLERS = """
import asyncio
import os
import signal

from tasker.handlers.decorators import step_handler


@step_handler("kills")
async def kills(context):
    await asyncio.sleep(0.1)
    os.kill(os.getpid(), signal.SIGKILL)


@step_handler("waits")
async def waits(context):
    await asyncio.sleep(0.5)
    return {}
"""


def written(folder: Path) -> Path:
    """A workflow of one step that kills and others that take longer than it does."""
    steps = [STEP.format(name="culprit", handler="kills", attempts=10)]
    steps += [STEP.format(name=f"neighbour{n}", handler="waits", attempts=3) for n in range(NEIGHBOURS)]
    head = 'name: poisoned\nnamespace_name: poison\nversion: "1.0.0"\nsteps:\n'
    (folder / "workflow.yaml").write_text(head + "".join(f"  - {step}\n" for step in steps))
    (folder / "handlers.py").write_text(HANDLERS)
    return folder


def test_a_step_that_kills_its_workers_is_put_aside_and_its_neighbours_complete(
    database_url: str, fleet: Fleet, oracle: Oracle, tmp_path: Path
) -> None:
    (folder := tmp_path / "workflow").mkdir()
    written(folder)

    async def submit() -> str:
        async with tasker.App(database_url, work=False) as app:
            return (await app.submit(folder)).task_uuid

    task = asyncio.run(submit())
    fleet.worker("workers", str(folder), "--processes", "2", "--concurrency", "10", lease=1)

    oracle.wait_for_the_end([task])
    oracle.check({task: "error"})
    ends = oracle.rows("select name, state, attempts from tasker.workflow_steps order by name")
    assert ends[0] == ("culprit", "error", 3)
    assert [state for _, state, _ in ends[1:]] == ["complete"] * NEIGHBOURS
    types = "select f.error->>'error_type' from tasker.step_failures f join tasker.workflow_steps s"
    types += " using (workflow_step_uuid) where s.name = 'culprit' order by f.failure_id"
    assert [kind for (kind,) in oracle.rows(types)] == ["worker_lost", "worker_lost", "killed_its_workers"]
