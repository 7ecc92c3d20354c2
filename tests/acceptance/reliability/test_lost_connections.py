"""Connections that the server ends at any moment: calls are repeated, and nothing happens twice."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from random import Random
from typing import Any

import psycopg

import tasker
from tasker.errors import DatabaseError, DuplicateTask
from tasker.services.submission.submit import Submission, SubmissionResult
from tests.acceptance.examples.workflow_case import WORKFLOWS, load_input
from tests.support.fleets.oracle import Oracle

TASKS, LOST = 60, 10
HELD = "lock table tasker.task_details in share mode"
WAITING = """select pid from pg_locks join pg_stat_activity using (pid)
  where relation = 'tasker.task_details'::regclass and not granted and datname = current_database()"""
OTHERS = "select pid from pg_stat_activity where datname = current_database() and application_name like 'tasker %'"


async def interrupted(url: str, random: Random, submission: Coroutine[Any, Any, bool]) -> bool:
    """What a submission answers whose connection is ended in the middle, with some of the other clients'."""
    async with (
        await psycopg.AsyncConnection.connect(url) as holder,
        await psycopg.AsyncConnection.connect(url, autocommit=True) as observer,
    ):
        await holder.execute(HELD)
        submitting = asyncio.create_task(submission)
        async with asyncio.timeout(60):
            while not (held := await (await observer.execute(WAITING)).fetchall()):
                await asyncio.sleep(0.005)
        others = await (await observer.execute(OTHERS)).fetchall()
        chosen = [pid for (pid,) in held] + [pid for (pid,) in others if random.random() < 0.5]
        await observer.execute("select pg_terminate_backend(pid) from unnest(%s::int[]) pid", (chosen,))
        await holder.rollback()
        return await submitting


def test_a_submission_whose_connection_is_lost_is_repeated_without_a_second_task(
    database_url: str, oracle: Oracle
) -> None:
    random, folder = Random(1), "linear_math"

    async def run() -> None:
        async with tasker.App(database_url) as app:
            for number in range(TASKS):
                request = Submission(load_input(folder), idempotency_key=str(number))
                if number % (TASKS // LOST) == 0:
                    assert await interrupted(database_url, random, submitted(app, request))
                while not await submitted(app, request):
                    pass
            for (task,) in oracle.rows("select task_uuid::text from tasker.tasks"):
                await app.wait(task)

    async def submitted(app: tasker.App, request: Submission) -> bool:
        try:
            (answer,) = await app.submit_many(WORKFLOWS / folder, [request])
        except DatabaseError:
            return False
        return isinstance(answer, SubmissionResult | DuplicateTask)

    asyncio.run(run())

    tasks = [task for (task,) in oracle.rows("select task_uuid::text from tasker.tasks")]
    assert len(tasks) == TASKS
    oracle.check(dict.fromkeys(tasks, "complete"))
