"""A process says how many connections it needs, and needs no more."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import tasker
from tasker.process.connections.capacity import ORCHESTRATOR, WORKER, tell_capacity
from tasker.services.submitting.submission import Request
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
            await app.submit_many(SLOW, [Request({"seconds": 0.01, "n": number}) for number in range(TASKS)])

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


async def test_a_server_that_is_too_small_for_the_fleet_is_a_warning(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.INFO, "tasker.process"):
        await tell_capacity(database_url, WORKER, 1)
        await tell_capacity(database_url, WORKER, 1_000)

    assert [record.levelname for record in caplog.records] == ["INFO", "WARNING"]
    assert "sum=5000" in caplog.text
    assert "raise its max_connections" in caplog.text
