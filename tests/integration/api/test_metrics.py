"""What Prometheus reads: the numbers that `tasker top` shows."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from typing import Any

import httpx
import psycopg
import pytest
from prometheus_client.parser import text_string_to_metric_families

import tasker
from tasker.db.connection import Connection
from tasker.db.pool import Pool
from tasker.services.fleet.metric_catalogue import CATALOGUE
from tasker.services.submission.submit import Submission
from tasker.template import compile_text
from tasker.views.overview import Overview
from tests.integration.api.conftest import own_app
from tests.integration.api.program import WAITING
from tests.support.registered import submit_registered

app = own_app


async def scraped(client: httpx.AsyncClient) -> dict[str, float]:
    answer = await client.get("/metrics")
    assert (answer.status_code, answer.headers["content-type"]) == (200, "text/plain; version=0.0.4; charset=utf-8")
    found: dict[str, float] = {}
    for family in text_string_to_metric_families(answer.text):
        name = f"{family.name}_total" if family.type == "counter" else family.name
        assert CATALOGUE[name].kind == family.type
        for sample in family.samples:
            labels = ",".join(f'{label}="{value}"' for label, value in sample.labels.items())
            found[f"{sample.name}{{{labels}}}" if labels else sample.name] = sample.value
    return found


async def test_the_numbers_are_those_of_the_fleet(app: tasker.App, client: httpx.AsyncClient) -> None:
    (plan,) = compile_text(WAITING).plans
    await app.plans.register(plan, force=True)
    for _ in range(2):
        await submit_registered(app, plan, Submission({}))

    found, overview = await scraped(client), await app.fleet.overview()

    assert found["tasker_database_up"] == 1
    assert found['tasker_queue_depth{namespace="nobody"}'] == 2
    assert 0 <= found['tasker_queue_age_seconds{namespace="nobody"}'] < 600
    assert sum(number for name, number in found.items() if name.startswith("tasker_tasks_active{")) == overview.open
    assert found['tasker_workers{kind="worker",state="live"}'] == len(overview.processes) == 1
    assert found["tasker_worker_slots"] == overview.processes[0].slots
    assert found["tasker_db_pool_acquires_total"] > 0
    states = {name: number for name, number in found.items() if name.startswith("tasker_circuit_breaker_state{")}
    assert states == {f'tasker_circuit_breaker_state{{component="{each.name}"}}': 0 for each in app.breakers.readings()}
    assert 'tasker_circuit_breaker_state{component="database"}' in states


LIMITED = """
name: limited
namespace_name: elsewhere
version: 1.0.0
identity_strategy: always_unique
steps:
  - {name: check, handler: elsewhere.check, concurrency: {limit: 1}}
"""


async def test_permits_of_limits_and_steps_that_wait_for_them_are_counted(
    app: tasker.App, client: httpx.AsyncClient
) -> None:
    (plan,) = compile_text(LIMITED).plans
    for _ in range(3):
        await submit_registered(app, plan, Submission({}))
    named = '{limit="step elsewhere/limited/check"}'
    expected = {f"tasker_limit_permits{named}": 1, f"tasker_limit_waiting{named}": 2}
    await app._engine.connection.execute(
        "insert into tasker.flow_turns (namespace_id, round)"
        " select namespace_id, 3 from tasker.task_namespaces where name = 'elsewhere'"
    )
    expected['tasker_fair_rounds_total{namespace="elsewhere"}'] = 3

    async with asyncio.timeout(60):
        while not expected.items() <= (await scraped(client)).items():
            await asyncio.sleep(0.1)


async def test_dead_letters_are_counted_and_timed(
    app: tasker.App, client: httpx.AsyncClient, module_database_url: str
) -> None:
    plan = (await app.plans.find("shop", "orders", "1.0.0")).plan
    task = await submit_registered(app, plan, Submission({"amount": -1}, idempotency_key="counted"))
    await app.finished(task.task_uuid, timeout=20)
    entry = (await client.get(f"/v1/dlq/task/{task.task_uuid}")).json()["dlq_entry_uuid"]
    await client.patch(f"/v1/dlq/entry/{entry}", json={"resolution_status": "manually_resolved"})

    found = await scraped(client)

    with psycopg.connect(module_database_url) as connection:
        counts = "count(*), count(*) filter (where resolution_status = 'pending')"
        ((entries, pending),) = connection.execute(f"select {counts} from tasker.tasks_dlq").fetchall()
    assert found["tasker_dlq_entries_created_total"] == entries > 0
    assert found["tasker_dlq_pending_investigations"] == pending
    assert found["tasker_dlq_time_in_queue_hours_count"] == entries - pending > 0
    assert found['tasker_dlq_time_in_queue_hours_bucket{le="1"}'] == entries - pending


async def test_many_who_scrape_at_once_are_answered_from_one_reading(
    app: tasker.App, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasker.services.fleet.metrics.FRESH_SECONDS", math.inf)
    readings, overview = Counter[str](), app.fleet.overview

    async def counting(**how: Any) -> Overview:
        readings["overview"] += 1
        return await overview(**how)

    monkeypatch.setattr(app.fleet, "overview", counting)
    found = [*await asyncio.gather(*(scraped(client) for _ in range(10))), await scraped(client)]
    assert readings == {"overview": 1}
    assert {each["tasker_database_up"] for each in found} == {1}


async def test_without_the_database_there_are_the_numbers_of_the_process(
    app: tasker.App, client: httpx.AsyncClient
) -> None:
    await app._connection.close()
    app._connection.pool = Pool(lambda: Connection("postgresql://nobody:secret@127.0.0.1:1/nothing"))

    found = await scraped(client)

    assert found["tasker_database_up"] == 0
    assert found['tasker_db_pool_connections{pool="tasker",state="active"}'] == 0
