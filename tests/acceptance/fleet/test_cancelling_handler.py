"""A handler that cancels every task of the event loop: its process goes on, and the failures name it."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest

from tests.support.command_line import run_json, write_workflow
from tests.support.fleets.fleet import Fleet
from tests.support.fleets.oracle import Oracle
from tests.support.fleets.submitting import submit_folder

pytestmark = pytest.mark.slow

TEMPLATE = """
    name: rude
    namespace: rude
    version: 1.0.0
    steps:
      - {name: wait, handler: patient, retry: {backoff_base_ms: 1}}
      - {name: sweep, handler: rude.sweep, retry: {backoff_base_ms: 1}}
"""
HANDLERS = """
    import asyncio

    from tasker.handlers.decorators import step_handler

    waits = asyncio.Event()


    @step_handler("patient")
    async def patient(context):
        if context.retry_count == 0:
            waits.set()
            await asyncio.Event().wait()
        return {}


    @step_handler("rude.sweep")
    async def sweep(context):
        if context.retry_count == 0:
            await waits.wait()
            for task in asyncio.all_tasks():
                task.cancel()
            await asyncio.sleep(0)
        return {}
"""


def messages(database_url: str, task: str) -> dict[str, list[str]]:
    """What the failed attempts of each step say."""
    found: dict[str, list[str]] = {}
    failures = "select s.name, f.error->>'message' from tasker.step_failures f join tasker.workflow_steps s"
    with psycopg.connect(database_url) as connection:
        statement = f"{failures} using (workflow_step_uuid) where f.task_uuid = %s"
        for step, message in connection.execute(statement.encode(), (task,)):
            found.setdefault(step, []).append(message)
    return found


def expected(task: str) -> dict[str, list[str]]:
    culprit = f"handler rude.sweep, step sweep of task {task}"
    return {
        "wait": [f"the asyncio task that ran this step was cancelled by {culprit}"],
        "sweep": ["the asyncio task that ran this step was cancelled by its own handler"],
    }


def test_a_worker_survives_a_handler_that_cancels_all_tasks(
    database_url: str, fleet: Fleet, oracle: Oracle, tmp_path: Path
) -> None:
    workflow = write_workflow(tmp_path / "rude", TEMPLATE, HANDLERS)
    fleet.worker("one", str(workflow))
    task = submit_folder(database_url, workflow)

    oracle.wait_for_the_end([task])
    oracle.check({task: "complete"})
    assert fleet.processes["one"].poll() is None
    assert messages(database_url, task) == expected(task)
    assert "task_not_cancelled" in fleet.log("one")


def test_a_run_survives_a_handler_that_cancels_all_tasks(database_url: str, tmp_path: Path) -> None:
    found = run_json(write_workflow(tmp_path, TEMPLATE, HANDLERS), database=database_url)

    assert found["status"] == "complete"
    assert messages(database_url, found["task_uuid"]) == expected(found["task_uuid"])
