"""Connections that the server ends at any moment: calls are repeated, and nothing happens twice."""

from __future__ import annotations

import asyncio
from random import Random

import psycopg

import tasker
from tasker.errors import DatabaseError, DuplicateTask
from tasker.services.submission import Request, Submitted
from tests.acceptance.workflow_case import WORKFLOWS, load_input
from tests.support.oracle import Oracle

TASKS = 60


def end_connections(url: str, share: float, random: Random) -> int:
    """End some connections of this database's clients, as a server that restarts would; how many."""
    with psycopg.connect(url, autocommit=True) as connection:
        rows = connection.execute(
            "select pid from pg_stat_activity where datname = current_database() and application_name like 'tasker %'"
        ).fetchall()
        chosen = [pid for (pid,) in rows if random.random() < share]
        connection.execute("select pg_terminate_backend(pid) from unnest(%s::int[]) pid", (chosen,))
        return len(chosen)


def test_a_submission_whose_connection_is_lost_is_repeated_without_a_second_task(
    database_url: str, oracle: Oracle
) -> None:
    random, folder = Random(1), "linear_math"

    async def run() -> None:
        async with tasker.App(database_url) as app:
            for number in range(TASKS):
                if number % 3 == 0:
                    assert end_connections(database_url, 0.5, random) >= 0
                request = Request(load_input(folder), idempotency_key=str(number))
                while not await submitted(app, request):
                    pass
            for (task,) in oracle.rows("select task_uuid::text from tasker.tasks"):
                await app.wait(task)

    async def submitted(app: tasker.App, request: Request) -> bool:
        try:
            (answer,) = await app.submit_many(WORKFLOWS / folder, [request])
        except DatabaseError:
            return False
        return isinstance(answer, Submitted | DuplicateTask)

    asyncio.run(run())

    tasks = [task for (task,) in oracle.rows("select task_uuid::text from tasker.tasks")]
    assert len(tasks) == TASKS
    oracle.check(dict.fromkeys(tasks, "complete"))
