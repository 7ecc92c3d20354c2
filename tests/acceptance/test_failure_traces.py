"""An exception in a handler is found: in the worker's log and in `tasker task show`, with its class and place."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import tasker
from tests.support.command_line import invoke, write_workflow
from tests.support.fleets.fleet import ROOT, Fleet
from tests.support.waiting import until

TEMPLATE = """
    name: breaks
    namespace_name: traces
    version: "1.0.0"
    steps:
      - {name: only, handler: traces.break, retry: {max_attempts: 2, backoff: fixed, backoff_base_ms: 10}}
"""
HANDLERS = """
    import json

    from tasker.handlers.decorators import step_handler


    @step_handler("traces.break")
    async def break_():
        json.loads("no\\\\nJSON")
        return {}
"""
RAISED = "JSONDecodeError at {}:9"


@pytest.fixture
def fleet(database_url: str, tmp_path: Path) -> Iterator[Fleet]:
    running = Fleet(database_url, tmp_path)
    yield running
    running.stop()


def submit(url: str) -> str:
    async def create() -> str:
        async with tasker.App(url, work=False) as app:
            return (await app.submit("traces/breaks")).task_uuid

    return asyncio.run(create())


def state_of(url: str) -> str:
    with psycopg.connect(url) as connection:
        row = connection.execute("select state from tasker.tasks").fetchone()
        return str(row and row[0])


def test_each_failed_attempt_is_a_line_and_the_last_one_has_the_traceback(
    fleet: Fleet, database_url: str, tmp_path: Path
) -> None:
    place = write_workflow(tmp_path / "workflow", TEMPLATE, HANDLERS)
    fleet.worker("one", str(place))
    task = submit(database_url)
    until(lambda: state_of(database_url) == "error", "the task fails", show=lambda: fleet.log("one"))

    log, raised = fleet.log("one"), RAISED.format(place / "handlers.py")
    (warning,) = [
        line for line in log.splitlines() if "WARNING tasker.failures Step execution failed, will retry" in line
    ]
    (error,) = [
        line
        for line in log.splitlines()
        if "ERROR tasker.failures Step execution failed after max retries, will not retry further" in line
    ]
    assert f" task_uuid={task} " in warning
    assert " operation=attempt_failed error='Expecting value" in warning
    assert f" context='{raised}' step_name=only attempt=1 retry_count=0 max_retries=1 handler=traces.break" in warning
    assert " operation=step_failed " in error
    assert " attempt=2 retry_count=1 max_retries=1 " in error
    assert error.endswith("reason=attempts_exhausted")
    assert log.count("Traceback (most recent call last)") == 1

    text = invoke("task", "show", task, database=database_url).stdout
    assert f"raised: {raised}" in text
    assert "Traceback" not in text
    whole = invoke("task", "show", task, "--traceback", database=database_url).stdout
    assert "  Traceback (most recent call last):" in whole
    assert 'json.loads("no' in whole


def test_the_view_of_a_run_is_not_disturbed_by_the_log(database_url: str, tmp_path: Path) -> None:
    place = write_workflow(tmp_path / "workflow", TEMPLATE, HANDLERS)
    command = [sys.executable, "-m", "tasker", "run", str(place), "--database-url", database_url]

    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)

    assert done.returncode == 1
    assert done.stderr == ""
    assert f"raised: {RAISED.format(place / 'handlers.py')}" in done.stdout
