"""Sessions that accept no writes are replaced: after a failover, and after a database was read-only for a while."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import psycopg
import pytest

import tasker
from tasker.db import migrate
from tasker.errors import DatabaseError
from tests.acceptance.fleet.test_stopping import submit, workflow
from tests.support.fleets.fleet import ROOT, Fleet
from tests.support.servers.standby import Pair, primary_with_standby
from tests.support.waiting import until

pytestmark = pytest.mark.slow

WORKFLOW = ROOT / "tests" / "chaos" / "workflow"
PROCESSES = ("worker", "orchestrator")
ENDS = ("database_unreachable", "database_reconnected")


@pytest.fixture
def pair(cluster: Path, backend_scripts: Sequence[tuple[str, str]]) -> Iterator[Pair]:
    with primary_with_standby(cluster) as servers:
        migrate.upgrade(servers.url, backend_scripts)
        yield servers


@contextmanager
def started(url: str, folder: Path) -> Iterator[Fleet]:
    """A worker and an orchestrator."""
    fleet = Fleet(url, folder)
    try:
        fleet.worker("worker", str(WORKFLOW), "--result-path", "queued", lease=30)
        fleet.orchestrator("orchestrator")
        yield fleet
    finally:
        fleet.stop()


async def completed(app: tasker.App, number: int) -> str:
    """The status in which a new task ends; what the database refuses meanwhile is asked again."""
    async with asyncio.timeout(90):
        while True:
            with suppress(DatabaseError):
                task = await app.submit(WORKFLOW, {"seconds": 0, "n": number}, idempotency_key=str(number))
                return (await app.wait(task.task_uuid)).status
            await asyncio.sleep(0.05)


def outage_lines(fleet: Fleet, process: str) -> list[str]:
    """The events that begin and end outages, as that process has logged them."""
    return [word for word in fleet.log(process).split() if word in ENDS]


def assert_quiet(fleet: Fleet) -> None:
    """Each process logs the beginning and the end of the outage, and no traceback."""
    for process in PROCESSES:
        until(lambda: outage_lines(fleet, process)[-1:] == [ENDS[1]], f"{process} is back", limit=30)  # noqa: B023
        assert outage_lines(fleet, process) == [*ENDS], fleet.log(process)
        assert "Traceback" not in fleet.log(process)
        assert "service_crashed" not in fleet.log(process)
        assert "message_of_unknown_step" not in fleet.log(process), "it has read from two servers at once"


def all_wait(fleet: Fleet) -> bool:
    return all("database_unreachable" in fleet.log(process) for process in PROCESSES)


@pytest.mark.parametrize("fail", [Pair.fence, Pair.kill], ids=["fenced", "gone"])
async def test_work_continues_on_a_promoted_standby(pair: Pair, tmp_path: Path, fail: Callable[[Pair], None]) -> None:
    with started(pair.url, tmp_path) as fleet:
        async with tasker.App(pair.url, work=False) as app:
            assert await completed(app, 1) == "complete"
            await asyncio.to_thread(fail, pair)
            await asyncio.to_thread(until, lambda: all_wait(fleet), "both have noticed", limit=60)
            await asyncio.to_thread(pair.promote)
            assert await completed(app, 2) == "complete"
        await asyncio.to_thread(assert_quiet, fleet)


async def test_work_continues_after_a_read_only_database(database_url: str, tmp_path: Path) -> None:
    with started(database_url, tmp_path) as fleet:
        async with tasker.App(database_url, work=False) as app:
            assert await completed(app, 1) == "complete"
            await asyncio.to_thread(make_read_only, database_url)
            await asyncio.to_thread(until, lambda: all_wait(fleet), "both have noticed", limit=60)
            with pytest.raises(DatabaseError):
                await app.submit(WORKFLOW, {"seconds": 0, "n": 2})
            await asyncio.to_thread(make_writable, database_url)
            assert await completed(app, 3) == "complete"
        await asyncio.to_thread(assert_quiet, fleet)


def test_stop_ends_within_its_limit_while_a_result_cannot_be_stored(database_url: str, tmp_path: Path) -> None:
    place = workflow(tmp_path, "await asyncio.sleep(0.02)")
    fleet = Fleet(database_url, tmp_path)
    try:
        fleet.worker("worker", str(place), "--shutdown-timeout", "10", lease=30)
        submit(database_url)
        until((tmp_path / "started").exists, "the step runs")
        make_read_only(database_url)
        until(lambda: "database_unreachable" in fleet.log("worker"), "it has noticed")
        (tmp_path / "hanging").unlink()
        fleet.processes["worker"].terminate()
        assert fleet.processes["worker"].wait(60) == 0, fleet.log("worker")
    finally:
        fleet.stop()
    assert "not stopped after" not in fleet.log("worker")
    assert "1 step did not end in time" in fleet.log("worker")


def make_read_only(url: str) -> None:
    """Also for those who are connected: their sessions end."""
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f'alter database "{admin.info.dbname}" set default_transaction_read_only = on')
        admin.execute("""
            select pg_terminate_backend(pid) from pg_stat_activity
            where datname = current_database() and pid <> pg_backend_pid() and backend_type = 'client backend'""")


def make_writable(url: str) -> None:
    with psycopg.connect(url, autocommit=True, options="-c default_transaction_read_only=off") as admin:
        admin.execute(f'alter database "{admin.info.dbname}" reset default_transaction_read_only')
