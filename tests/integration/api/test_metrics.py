"""What Prometheus reads: the numbers that `tasker top` shows."""

from __future__ import annotations

import re

import httpx

import tasker
from tasker.db.connection import Connection
from tasker.services.server.metrics import CATALOGUE
from tasker.services.submitting.submission import Request
from tasker.template import compile_text
from tests.integration.api.program import WAITING

LINE = re.compile(r"([a-z_]+)(?:\{(.*)\})? (\S+)")


async def scraped(client: httpx.AsyncClient) -> dict[str, float]:
    answer = await client.get("/metrics")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    lines = [line for line in answer.text.splitlines() if not line.startswith("#")]
    matches = [LINE.fullmatch(line) for line in lines]
    assert all(matches), answer.text
    for match in matches:
        assert match is not None
        assert f"# TYPE {match[1]} {CATALOGUE[match[1]][0]}" in answer.text
    return {f"{match[1]}{{{match[2]}}}" if match[2] else match[1]: float(match[3]) for match in matches if match}


async def test_the_numbers_are_those_of_the_fleet(app: tasker.App, client: httpx.AsyncClient) -> None:
    (plan,) = compile_text(WAITING).plans
    await app.plans.register(plan, force=True)
    for _ in range(2):
        await app.submit_request(plan, Request({}))

    found, overview = await scraped(client), await app.fleet.overview()

    assert found["tasker_database_up"] == 1
    assert found['tasker_queue_depth{namespace="nobody"}'] == 2
    assert 0 <= found['tasker_queue_age_seconds{namespace="nobody"}'] < 600
    assert sum(number for name, number in found.items() if name.startswith("tasker_tasks_active{")) == overview.open
    assert found['tasker_workers{kind="worker",state="live"}'] == len(overview.processes) == 1
    assert found["tasker_worker_slots"] == overview.processes[0].slots
    assert found["tasker_db_pool_acquires_total"] > 0


async def test_every_name_is_in_the_catalogue(client: httpx.AsyncClient) -> None:
    assert {name.partition("{")[0] for name in await scraped(client)} <= {*CATALOGUE}


async def test_without_the_database_there_are_the_numbers_of_the_process(
    app: tasker.App, client: httpx.AsyncClient
) -> None:
    await app._connection.close()
    app._connection.pool._make = lambda: Connection("postgresql://nobody:secret@127.0.0.1:1/nothing")

    found = await scraped(client)

    assert found["tasker_database_up"] == 0
    assert found['tasker_db_pool_connections{pool="tasker",state="active"}'] == 0
