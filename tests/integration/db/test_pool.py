"""The pool of an `App`: bounded, never stuck, and it says when it is exhausted."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import psycopg
import pytest

import tasker
from tasker.app.configured import Configured
from tasker.db.connection import Connection
from tasker.db.pool import WAIT_BOUNDS_MS, Pool, PoolClosed, SlowWaits
from tasker.errors import PoolExhausted, UsageError
from tasker.services.submission.submit import SubmissionResult
from tasker.settings.database import Database, PoolTable
from tasker.template import compile_text

ONE = PoolTable(max_connections=1, min_connections=0, acquire_timeout_seconds=60.0)
HELD = "select pg_advisory_xact_lock(42)"
TEMPLATE = """
name: greeting
namespace: pooled
version: 1.0.0
steps:
  - name: greet
    handler: {callable: greet}
"""
MakePool = Callable[[PoolTable], Pool[Connection]]


@pytest.fixture
async def make_pool(database_url: str) -> AsyncIterator[MakePool]:
    made: list[Pool[Connection]] = []

    def make(settings: PoolTable) -> Pool[Connection]:
        made.append(Pool(lambda: Connection(database_url, name="tasker pooled"), settings))
        return made[-1]

    yield make
    for pool in made:
        await pool.close()


@asynccontextmanager
async def all_lent(pool: Pool[Connection], database_url: str) -> AsyncIterator[None]:
    """Every connection of the pool runs a statement that waits, until the context ends."""
    with psycopg.connect(database_url, autocommit=True) as holder:
        holder.execute("select pg_advisory_lock(42)")
        statements = [asyncio.create_task(pool.execute(HELD)) for _ in range(pool.settings.max_connections)]
        await until(lambda: pool.sizes()["lent"] == len(statements))
        yield
        holder.execute("select pg_advisory_unlock(42)")
        await asyncio.gather(*statements)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(60):
        while not holds():
            await asyncio.sleep(0.01)


async def until_sessions(url: str, expected: int) -> None:
    """Return once the server has so many sessions of the pool."""
    query = """select count(*) from pg_stat_activity
      where application_name = 'tasker pooled' and datname = current_database()"""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as other, asyncio.timeout(60):
        while await (await other.execute(query)).fetchone() != (expected,):
            await asyncio.sleep(0.02)


async def test_parallel_submissions_through_one_connection_all_finish(database_url: str) -> None:
    (plan,) = compile_text(TEMPLATE).plans
    configuration = Configured(database=Database(pool=ONE))
    async with tasker.App(database_url, configuration=configuration, work=False) as app, asyncio.timeout(60):
        answers = await asyncio.gather(*(app.submit(plan, {"number": number}) for number in range(50)))

    assert all(isinstance(answer, SubmissionResult) for answer in answers)
    assert len({answer.task_uuid for answer in answers}) == 50


async def test_no_more_connections_than_allowed_are_opened(make_pool: MakePool) -> None:
    pool = make_pool(PoolTable(max_connections=3, min_connections=0))
    rows = await asyncio.gather(*(pool.execute("select pg_backend_pid(), pg_sleep(0.01)") for _ in range(30)))

    assert len({row[0][0] for row in rows}) <= 3 == pool.sizes()["made"], "one may have done the work of a slow one"
    assert pool.counts["acquires"] == 30


async def test_one_caller_after_the_other_needs_one_connection(make_pool: MakePool) -> None:
    pool = make_pool(PoolTable())
    rows = [await pool.execute("select pg_backend_pid()") for _ in range(10)]

    assert len({row[0][0] for row in rows}) == 1
    assert pool.waits().counted() == ([10, *[0] * len(WAIT_BOUNDS_MS)], 0), "nobody has waited"


async def test_an_exhausted_pool_says_so_counts_it_and_recovers(make_pool: MakePool, database_url: str) -> None:
    pool = make_pool(PoolTable(max_connections=2, acquire_timeout_seconds=0.05))
    async with all_lent(pool, database_url):
        with pytest.raises(PoolExhausted) as caught:
            await pool.execute("select 1")

    error = caught.value
    assert error.retryable
    assert error.error_type == "pool_exhausted"
    assert "2 of 2 are in use" in error.message
    assert "common.database.pool.max_connections" in str(error.hint)
    assert error.metadata["max"] == error.metadata["lent"] == 2
    assert pool.counts["exhausted"] == 1
    assert pool.waits().counted()[1] > 0, "who got none has waited, too"
    assert await pool.execute("select 1") == [(1,)]
    assert pool.sizes() == {"max": 2, "made": 2, "lent": 0, "waiting": 0}


async def test_whoever_waits_gets_the_next_free_connection_and_a_long_wait_is_told(
    make_pool: MakePool, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    pool = make_pool(ONE.replace(slow_acquire_threshold_ms=0))
    with caplog.at_level(logging.WARNING, "tasker.database"):
        async with all_lent(pool, database_url):
            waiting = asyncio.create_task(pool.execute("select 7"))
            await until(lambda: pool.sizes()["waiting"] == 1)
        assert await waiting == [(7,)]

    assert pool.counts["slow_acquires"] == 1
    assert "pool_slow_acquire count=1" in caplog.text


async def test_those_who_wait_too_long_together_are_told_in_one_line(
    make_pool: MakePool, database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    pool = make_pool(ONE.replace(slow_acquire_threshold_ms=0))
    async with all_lent(pool, database_url):
        waiting = [asyncio.create_task(pool.execute("select 7")) for _ in range(6)]
        await until(lambda: pool.sizes()["waiting"] == 6)
    await asyncio.gather(*waiting)
    await pool.close()

    told = [line.getMessage() for line in caplog.records if "pool_slow_acquire" in line.getMessage()]
    assert [line.split()[1] for line in told] == ["count=1", "count=5"]
    assert pool.counts["slow_acquires"] == 6
    counts, total_ms = pool.waits().counted()
    assert (sum(counts), total_ms > 0) == (7, True), "six, and the one that had the connection"


def test_each_period_has_its_line(caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    waits = SlowWaits(lambda: now)
    for now, seconds in ((0.0, 0.1), (1.0, 0.3), (59.0, 0.2), (60.0, 0.1), (61.0, 0.1)):  # noqa: B007
        waits.note(seconds, dict)
    assert [line.getMessage() for line in caplog.records] == [
        "pool_slow_acquire count=1 longest_ms=100 {}",
        "pool_slow_acquire count=3 longest_ms=300 {}",
    ]


async def test_a_caller_who_gives_up_while_waiting_takes_nothing_along(make_pool: MakePool, database_url: str) -> None:
    pool = make_pool(ONE)
    async with all_lent(pool, database_url):
        waiting = asyncio.create_task(pool.execute("select 7"))
        await until(lambda: pool.sizes()["waiting"] == 1)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    assert await pool.execute("select 8") == [(8,)]


async def test_idle_connections_are_closed_down_to_the_minimum(make_pool: MakePool, database_url: str) -> None:
    pool = make_pool(PoolTable(max_connections=4, min_connections=1, idle_timeout_seconds=0.05))
    async with all_lent(pool, database_url):
        await until_sessions(database_url, 4)
    await until(lambda: pool.sizes()["made"] == 1)

    await until_sessions(database_url, 1)


async def test_a_connection_is_replaced_after_its_lifetime(make_pool: MakePool) -> None:
    pool = make_pool(ONE.replace(max_lifetime_seconds=0.0))
    rows = [await pool.execute("select pg_backend_pid()") for _ in range(3)]

    assert len({row[0][0] for row in rows}) == 3


async def test_connections_that_the_server_has_cut_while_they_were_idle_are_replaced_before_they_are_lent(
    make_pool: MakePool, database_url: str
) -> None:
    pool = make_pool(PoolTable(max_connections=3, min_connections=3))
    async with all_lent(pool, database_url):
        pass
    async with await psycopg.AsyncConnection.connect(database_url, autocommit=True) as other:
        await other.execute(
            "select pg_terminate_backend(pid, 5000) from pg_stat_activity "
            "where application_name = 'tasker pooled' and datname = current_database()"
        )
    rows = await asyncio.gather(*(pool.execute("select 7") for _ in range(9)))

    assert rows == [[(7,)]] * 9
    await until_sessions(database_url, 3)


async def test_a_pool_that_is_closed_keeps_no_connection(make_pool: MakePool, database_url: str) -> None:
    pool = make_pool(PoolTable(max_connections=2))
    async with all_lent(pool, database_url):
        await pool.close()

    await until_sessions(database_url, 0)


async def test_a_pool_that_is_closed_lends_nothing_any_more_also_to_those_who_wait(
    make_pool: MakePool, database_url: str
) -> None:
    pool = make_pool(ONE)
    async with all_lent(pool, database_url):
        waiting = [asyncio.create_task(pool.execute("select 7")) for _ in range(2)]
        await until(lambda: pool.sizes()["waiting"] == 2)
        await pool.close()
    refused = await asyncio.gather(*waiting, pool.execute("select 8"), return_exceptions=True)

    assert [type(each) for each in refused] == [PoolClosed] * 3
    assert isinstance(refused[0], UsageError)
    assert not refused[0].retryable
    await until_sessions(database_url, 0)
