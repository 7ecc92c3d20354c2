"""What has been stopped leaves nothing behind: no task of the loop, thread, child process, connection or open file."""

from __future__ import annotations

import asyncio
import os
import threading
from pathlib import Path

import psycopg
import pytest

import tasker
from tests.acceptance.examples.workflow_case import WORKFLOWS, load_input
from tests.support.servers import brokers
from tests.support.waiting import until

ROUNDS = 3


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def children() -> set[str]:
    text = "".join(path.read_text() for path in Path("/proc/self/task").glob("*/children"))
    return set(text.split())


def sessions(url: str) -> int:
    """Connections to the database beside this one."""
    with psycopg.connect(url) as connection:
        query = "select count(*) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()"
        row = connection.execute(query).fetchone()
        assert row
        return int(row[0])


async def alone() -> None:
    """Return when no other task of the loop is left; brokers' clients end theirs a moment after they are closed."""
    async with asyncio.timeout(30):
        while asyncio.all_tasks() != {asyncio.current_task()}:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("backend", brokers.ENGINE_BACKENDS)
def test_a_program_that_stops_its_app_is_as_it_was_before(database_url: str, backend: str) -> None:
    settings = brokers.engine_settings(backend)

    async def use(folder: str) -> None:
        async with tasker.App(database_url, backend=backend, backend_settings=settings) as app:
            outcome = await app.run(WORKFLOWS / folder, load_input(folder))
            assert outcome.status == "complete"
            await app.stop_working()
            await brokers.remove_queues(app.messaging, settings)
        await alone()

    asyncio.run(use("order_fulfillment"))  # what is made once for the process is made here
    threads, files, processes = threading.active_count(), open_files(), children()
    for _ in range(ROUNDS):
        asyncio.run(use("order_fulfillment"))

    until(  # an idle thread that was told to end does so in a moment
        lambda: threading.active_count() <= threads,
        "the threads have ended",
        limit=30,
        show=lambda: str(threading.enumerate()),
    )
    assert open_files() <= files
    assert children() <= processes
    until(lambda: sessions(database_url) == 0, "the server has seen every connection end")
