"""A server that allows no further session: what is open does the work, and nobody takes it for an outage."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
import psycopg
import pytest
import pytest_asyncio

import tasker
from tasker.db.connection import Connection
from tasker.db.pool import Pool
from tasker.errors import PoolExhausted, TooManyConnections
from tasker.server.application import application
from tasker.settings.database import PoolTable

LIMIT = 12


@dataclass
class Login:
    """A role that may have a limited number of sessions."""

    url: str
    admin: psycopg.Connection[tuple[int]]
    name: str

    def limit(self, sessions: int) -> None:
        self.admin.execute(f"alter role {self.name} connection limit {sessions}".encode())

    def end_sessions(self) -> None:
        query = "select pg_terminate_backend(pid, 60000) from pg_stat_activity where usename = %s"
        self.admin.execute(query, [self.name])


@pytest.fixture
def login(database_url: str) -> Iterator[Login]:
    name = f"few_{urlsplit(database_url).path[1:]}"
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute(
            f"create role {name} login password 'x' connection limit {LIMIT} in role {admin.info.user}".encode()
        )
        parts = urlsplit(database_url)
        url = parts._replace(netloc=f"{name}:x@{parts.netloc.rpartition('@')[2]}").geturl()
        made = Login(url, admin, name)
        yield made
        made.end_sessions()
        admin.execute(f"drop owned by {name}".encode())
        admin.execute(f"drop role {name}".encode())


@pytest_asyncio.fixture
async def app(login: Login) -> AsyncIterator[tasker.App]:
    async with tasker.App(login.url, work=False) as running:
        yield running


@pytest_asyncio.fixture
async def client(app: tasker.App) -> AsyncIterator[httpx.AsyncClient]:
    async with httpx.AsyncClient(transport=httpx.ASGITransport(app=application(app)), base_url="http://tasker") as made:
        yield made


async def test_burst_beyond_the_roles_limit_is_answered_by_the_open_sessions(
    app: tasker.App, client: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "tasker"):
        paths = ["/v1/tasks"] * 40 + ["/ready"]
        answers = await asyncio.gather(*map(client.get, paths))
        after = await client.get("/ready")

    assert [answer.status_code for answer in [*answers, after]] == [200] * 42
    assert app._connection.breaker.metrics().failures == 0
    told = [record.getMessage().split()[0] for record in caplog.records if record.name == "tasker.database"]
    assert told.count("database_full") == 1
    assert "database_unreachable" not in told


async def test_full_server_is_answered_as_busy_and_used_as_soon_as_it_has_room(
    app: tasker.App, client: httpx.AsyncClient, login: Login
) -> None:
    login.limit(0)
    login.end_sessions()
    ready = await client.get("/ready")
    refused = [await client.get("/v1/tasks") for _ in range(2)]
    login.limit(LIMIT)

    assert {answer.status_code for answer in refused} == {503}
    error = refused[-1].json()["error"]
    assert (error["code"], error["message"]) == ("SERVICE_UNAVAILABLE", "the database is too busy; nothing was changed")
    assert app._connection.breaker.metrics().failures == 0
    assert ready.json()["checks"]["web_database"]["message"] == "too_many_connections"
    assert (await client.get("/v1/tasks")).status_code == 200


async def test_pool_grows_again_when_the_server_has_room(login: Login) -> None:
    login.limit(2)
    pool = Pool(lambda: Connection(login.url), PoolTable(max_connections=5, min_connections=0))
    query = "select pg_sleep(0.05), pg_backend_pid()"
    try:
        few = await asyncio.gather(*(pool.execute(query) for _ in range(10)))
        login.limit(5)
        pids: set[int] = set()
        async with asyncio.timeout(60):
            while len(pids) < 5:
                pids = {rows[0][1] for rows in await asyncio.gather(*(pool.execute(query) for _ in range(10)))}
    finally:
        await pool.close()

    assert len({rows[0][1] for rows in few}) == 2


async def test_waiting_for_the_sessions_there_are_ends_with_the_timeout_and_its_reason(login: Login) -> None:
    login.limit(1)
    pool = Pool(lambda: Connection(login.url), PoolTable(max_connections=5, acquire_timeout_seconds=0.2))
    try:
        with psycopg.connect(login.admin.info.dsn, autocommit=True, password="x") as holder:
            holder.execute("select pg_advisory_lock(42)")
            waiting = asyncio.create_task(pool.execute("select pg_advisory_xact_lock(42)"))
            while pool.sizes()["lent"] == 0 or not any(each.is_open for each in pool._all):
                await asyncio.sleep(0.01)
            with pytest.raises(PoolExhausted) as caught:
                await pool.execute("select 1")
            holder.execute("select pg_advisory_unlock(42)")
            await waiting
    finally:
        await pool.close()

    assert "too many connections" in caught.value.message
    assert "connection limit" in str(caught.value.hint)


async def test_connection_says_that_the_server_is_full(login: Login) -> None:
    login.limit(0)
    with pytest.raises(TooManyConnections, match="too many connections for role") as caught:
        await Connection(login.url).execute("select 1")

    assert caught.value.retryable
    assert "connection limit" in str(caught.value.hint)
