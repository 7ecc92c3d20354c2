"""Processes that are killed or frozen inside the transaction of a handler: the step runs again, and its rows once."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest

import tasker
from tests.support.command_line import write_workflow
from tests.support.fleets.fleet import Fleet
from tests.support.waiting import until

pytestmark = [pytest.mark.slow, pytest.mark.long]

TEMPLATE = """
name: ledger
namespace: effects
version: 1.0.0
steps: [{name: post, handler: post, effect: transactional, timeout_seconds: 60, retry: {backoff_base_ms: 1}}]
"""
HANDLERS = """
import time
from pathlib import Path

from tasker.step_handler import step_handler


@step_handler("post")
def post(context):
    context.transaction.execute("insert into public.entry default values")
    if context.retry_count == 0:
        (Path(__file__).parent / "inside").touch()
        time.sleep(3600)
    return {}
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGSTOP])
def test_step_of_a_process_that_is_gone_runs_again_and_its_rows_exist_once(
    database_url: str, tmp_path: Path, end: signal.Signals
) -> None:
    folder = write_workflow(tmp_path / "ledger", TEMPLATE, HANDLERS)
    with psycopg.connect(database_url, autocommit=True) as connection:
        connection.execute("create table public.entry (id serial primary key)")
    fleet = Fleet(database_url, tmp_path)
    try:
        fleet.worker("one", str(folder), lease=3)
        task = asyncio.run(submitted(database_url, folder))
        until(lambda: (folder / "inside").exists(), "the handler is inside its transaction")
        fleet.processes["one"].send_signal(end)
        fleet.worker("two", str(folder), lease=3)
        report = asyncio.run(ended(database_url, task))
        if end is signal.SIGSTOP:
            fleet.processes["one"].send_signal(signal.SIGCONT)
    finally:
        fleet.stop()
    with psycopg.connect(database_url) as connection:
        rows = connection.execute("select count(*) from public.entry").fetchone()
        violations = connection.execute("select count(*) from tasker.violations_v1('{}')").fetchone()
    assert (report.status, report.steps["post"].attempts, rows, violations) == ("complete", 2, (1,), (0,))


async def submitted(url: str, folder: Path) -> str:
    async with tasker.App(url, work=False) as app:
        return str((await app.submit(folder, {}, idempotency_key=str(uuid4()))).task_uuid)


async def ended(url: str, task: str) -> tasker.TaskReport:
    async with tasker.App(url, work=False) as app:
        return await app.wait(task, timeout=90)
