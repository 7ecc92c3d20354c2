"""What a process counts of its searches for stale tasks (D-32); its port tells it at `/metrics`."""

from __future__ import annotations

from itertools import count

import psycopg

import tasker
from tasker.db.connection import Connection
from tasker.orchestration.dead_letters.staleness import StalenessSearch, StalenessSettings
from tasker.services.engine.calls import Engine
from tasker.services.submitting.submission import Request
from tasker.template import compile_text
from tests.integration.api.program import WAITING

WORKER = "01900000-0000-7000-8000-0000000000aa"


async def test_each_search_is_counted_with_what_it_found_and_how_long_it_took(database_url: str) -> None:
    async with tasker.App(database_url, work=False) as app:
        (plan,) = compile_text(WAITING).plans
        await app.plans.register(plan)
        old = [(await app.submit_request(plan, Request(tags=[str(n)]))).task_uuid for n in range(2)]
        with psycopg.connect(database_url) as connection:
            aged = "update tasker.tasks set created_at = created_at - interval '2 days' where task_uuid = any (%s)"
            connection.execute(aged, (old,))
        clock = count(step=0.25)
        connection = Connection(database_url)
        search = StalenessSearch(Engine(connection, app.messaging), StalenessSettings(), lambda: next(clock))
        await search.look(WORKER)
        await search.look(WORKER)  # it is not yet time for another one
        await connection.close()

        assert search.counts == {
            "detection_runs": 1,
            "detection_milliseconds": 250,
            "tasks_detected": 2,
            "entries_created": 2,
            "tasks_transitioned_to_error": 0,  # a worker that comes would go on with them
        }
        assert {(await app.dead_letters.of_task(task)).dlq_reason for task in old} == {"worker_unavailable"}
