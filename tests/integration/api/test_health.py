"""What a process says of how it does."""

from __future__ import annotations

import asyncio

import httpx
import pytest

import tasker
from tasker.db.connection import Connection
from tasker.db.pool import Pool
from tasker.server.shapes.health import DetailedHealthResponse, HealthResponse, PoolDetail, ReadinessResponse
from tasker.services.fleet import health as looking
from tasker.settings.database import PoolTable
from tests.integration.api.conftest import own_app
from tests.support.servers.silent import silent_server

app = own_app


async def test_a_process_that_reaches_everything_is_healthy_alive_and_ready(client: httpx.AsyncClient) -> None:
    health = await client.get("/health")
    assert health.status_code == 200
    assert HealthResponse.model_validate(health.json()).status == "healthy"
    assert (health.json()["database"], health.json()["message_queue"]) == ("connected", "operational")

    assert (await client.get("/live")).json()["status"] == "alive"
    ready = ReadinessResponse.model_validate((await client.get("/ready")).json())
    assert ready.status == "ready"
    assert ready.checks.orchestration_system.message == "1 workers and 0 orchestrators at work"


async def test_the_details_name_every_part(client: httpx.AsyncClient) -> None:
    found = DetailedHealthResponse.model_validate((await client.get("/health/detailed")).json())

    assert found.status == "healthy"
    assert found.checks.queue_depth.message == "0 steps enqueued"
    assert found.circuit_breakers == dict.fromkeys(("database", "task_readiness", "completion"), "closed")
    assert found.info.pool_utilization
    assert found.info.pool_utilization.tasker_pool.max_connections == found.info.web_database_pool_size


async def test_how_long_connections_were_waited_for_is_told(app: tasker.App, client: httpx.AsyncClient) -> None:
    async def told() -> PoolDetail:
        found = DetailedHealthResponse.model_validate((await client.get("/health/detailed")).json())
        assert found.info.pool_utilization
        return found.info.pool_utilization.tasker_pool

    before = await told()
    pool = app._connection.pool
    asked = (pool.execute("select pg_sleep(0.02)") for _ in range(pool.settings.max_connections + 1))
    await asyncio.gather(*asked)

    after = await told()
    assert after.max_acquire_time_ms >= before.max_acquire_time_ms
    assert after.max_acquire_time_ms > after.average_acquire_time_ms > 0, "most did not wait"


async def test_without_its_database_a_process_is_alive_and_not_ready_and_says_nothing_of_the_database(
    app: tasker.App, client: httpx.AsyncClient
) -> None:
    await app._connection.close()
    app._connection.pool = Pool(lambda: Connection("postgresql://nobody:secret@127.0.0.1:1/nothing"))

    assert (await client.get("/live")).status_code == 200
    refused = await client.get("/ready")
    assert refused.status_code == 503
    assert refused.json()["error"]["code"] == "SERVICE_UNAVAILABLE"
    assert refused.json()["checks"]["web_database"]["message"] == "database_unavailable"
    health = await client.get("/health")
    assert health.status_code == 200
    assert (health.json()["status"], health.json()["database"]) == ("unhealthy", "disconnected")
    assert "127.0.0.1:1" not in refused.text + health.text


async def test_a_database_that_hangs_counts_as_one_that_is_away(
    app: tasker.App, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "PROBE_SECONDS", 0.2)
    await app._connection.close()
    async with silent_server() as silent:
        url = f"postgresql://ada@127.0.0.1:{silent.port}/silent?connect_timeout=60"
        app._connection.pool = Pool(lambda: Connection(url))
        refused = await client.get("/ready")

    assert refused.status_code == 503
    assert refused.json()["checks"]["web_database"]["message"] == "no answer"


async def test_busy_pool_whose_database_answers_stays_ready(
    app: tasker.App, client: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(looking, "PROBE_SECONDS", 0.2)
    url = app.database_url
    await app._connection.close()
    app._connection.pool = pool = Pool(lambda: Connection(url), PoolTable(max_connections=1))
    asked = [asyncio.create_task(pool.execute("select pg_sleep(0.05)")) for _ in range(40)]
    await asyncio.sleep(0)
    ready, health = await client.get("/ready"), await client.get("/health")
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)

    assert ready.status_code == 200
    database = ready.json()["checks"]["web_database"]
    assert (database["status"], database["message"]) == ("degraded", "busy: no connection became free")
    assert health.json()["database"] == "connected"
