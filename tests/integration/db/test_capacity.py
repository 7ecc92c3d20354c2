"""A process says how many connections it needs, and needs no more."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import httpx
import psycopg
import pytest

import tasker
from tasker.db.connection import Connection
from tasker.engine.process_registry import ProcessRegistry, Registration
from tasker.process.connections import ORCHESTRATOR, WORKER, log_capacity
from tasker.services.submission.submit import Submission
from tasker_webhooks.signing import new_secret
from tests.integration.db.test_connection import free_port
from tests.support.fleets.fleet import ROOT, Fleet
from tests.support.waiting import until

SLOW = ROOT / "tests" / "chaos" / "workflow"
TASKS = 20


@pytest.fixture
def fleet(database_url: str, tmp_path: Path) -> Iterator[Fleet]:
    running = Fleet(database_url, tmp_path)
    yield running
    running.stop()


def submit(url: str) -> None:
    async def create() -> None:
        async with tasker.App(url, work=False) as app:
            await app.submit_many(SLOW, [Submission({"seconds": 0.01, "n": number}) for number in range(TASKS)])

    asyncio.run(create())


def test_a_worker_and_an_orchestrator_have_the_connections_they_tell_of(database_url: str, fleet: Fleet) -> None:
    fleet.worker("worker", str(SLOW), "--result-path", "queued")
    fleet.orchestrator("orchestrator")
    until(lambda: "connections per_process=6" in fleet.log("worker"), "it says so", show=lambda: fleet.log("worker"))
    until(lambda: "connections per_process=4" in fleet.log("orchestrator"), "it says so")
    submit(database_url)
    most: Counter[str] = Counter()
    with psycopg.connect(database_url, autocommit=True) as observer:

        def done() -> bool:
            query = """select application_name, count(*) from pg_stat_activity
              where datname = current_database() and application_name like 'tasker %' group by 1"""
            for name, count in observer.execute(query).fetchall():
                most[name] = max(most[name], count)
            row = observer.execute("select count(*) from tasker.tasks where complete").fetchone()
            return row == (TASKS,)

        until(done, "all tasks are final")

    told = Counter(f"tasker {purpose}" for purpose in (*WORKER, *ORCHESTRATOR, "messaging", "messaging"))
    passing = {"tasker start", "tasker app", "tasker"}
    assert not Counter({name: count for name, count in most.items() if name not in passing}) - told


WEBHOOKS = """
[plugins]
enabled = ["webhooks"]

[plugins.webhooks]
plain_http = true
"""
ENDPOINT = """
[[plugins.webhooks.endpoints]]
name = "receiver{number}"
url = "http://127.0.0.1:1/"
secrets = ["{secret}"]
"""


def sessions(observer: psycopg.Connection) -> int:
    """How many others are connected to the database."""
    query = """select count(*) from pg_stat_activity where datname = current_database()
      and backend_type = 'client backend' and pid <> pg_backend_pid()"""
    row = observer.execute(query).fetchone()
    assert row is not None
    return int(row[0])


def test_worker_with_webhooks_counts_the_connections_of_their_sender(
    database_url: str, fleet: Fleet, tmp_path: Path
) -> None:
    tables = [ENDPOINT.format(number=number, secret=new_secret()) for number in range(12)]
    (tmp_path / "tasker.toml").write_text(WEBHOOKS + "".join(tables))
    fleet.environment["TASKER_CONFIG_PATH"] = str(tmp_path / "tasker.toml")
    submit(database_url)
    fleet.program("worker", "-m", "tasker", "worker", str(SLOW), "--database-url", database_url)
    line = "connections per_process=9 (claim, result, upkeep, lease, listen, webhooks x 3, messaging)"
    until(lambda: line in fleet.log("worker"), "it says so", show=lambda: fleet.log("worker"))
    most = 0
    with psycopg.connect(database_url, autocommit=True) as observer:

        def done() -> bool:
            nonlocal most
            most = max(most, sessions(observer))
            row = observer.execute("select count(*) from tasker.tasks where complete").fetchone()
            joined = observer.execute("select count(*) from tasker.event_subscribers").fetchone()
            return (row, joined) == ((TASKS,), (12,))

        until(done, "all tasks are final, and every endpoint has joined", show=lambda: fleet.log("worker"))

    assert 6 < most <= 9


async def test_server_says_how_many_connections_it_may_open(database_url: str, fleet: Fleet) -> None:
    port = free_port()
    options = ("--no-config", "--port", str(port), "--database-url", database_url)
    fleet.program("server", "-m", "tasker", "server", *options)
    until(lambda: "listens on" in fleet.log("server"), "it listens", show=lambda: fleet.log("server"))
    assert "connections per_process=32 (app x 30, listen, messaging)" in fleet.log("server")
    with psycopg.connect(database_url, autocommit=True) as observer:
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=60) as client:
            answers = await asyncio.gather(*(client.get("/v1/tasks") for _ in range(100)))
        most = sessions(observer)

    assert {answer.status_code for answer in answers} == {200}
    assert 1 < most <= 32


async def test_a_server_that_is_too_small_for_the_fleet_is_a_warning(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "tasker.process"):
        await log_capacity(database_url, WORKER, 1)
        await log_capacity(database_url, WORKER, 1_000)

    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]
    assert "sum=5000" in caplog.text
    assert "raise its max_connections" in caplog.text


async def test_a_fleet_of_another_kind_is_not_counted_with_the_connections_of_this_process(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    connection = Connection(database_url)
    for _ in range(2):
        await ProcessRegistry(connection).start(Registration(str(uuid4()), 60_000))
    await connection.close()
    with caplog.at_level(logging.INFO, "tasker.process"):
        await log_capacity(database_url, WORKER, 1)
        await log_capacity(database_url, WORKER, 1, is_alike=False)

    assert [line.partition(" fleet=")[2].split()[0] for line in caplog.messages] == ["10", "5"]
