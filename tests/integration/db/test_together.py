"""Several statements of a pool as one transaction: all of them or none, and a connection comes back without one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psycopg
import pytest

from tasker.clock import SystemClock
from tasker.db.connection import Connection
from tasker.db.pool import Pool
from tasker.db.session import Session
from tasker.engine.guarded_connection import GuardedConnection
from tasker.errors import ConnectionLost, DatabaseBreakerOpen, DatabaseError
from tasker.resilience.breaker import CircuitBreaker, GuardedCircuit
from tasker.settings.database import PoolTable
from tasker.template.plan import BreakerPolicy

NAME = "tasker together"
ADD, PID = "insert into public.added values (%s)", "select pg_backend_pid()"


@pytest.fixture
def observer(empty_database_url: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(empty_database_url, autocommit=True) as connection:
        connection.execute("create table public.added (id int)")
        yield connection


@pytest.fixture
async def pool(empty_database_url: str, observer: psycopg.Connection) -> AsyncIterator[GuardedConnection]:
    settings = PoolTable(max_connections=2, acquire_timeout_seconds=20.0)
    pool = Pool(lambda: Connection(empty_database_url, name=NAME), settings)
    guarded = GuardedConnection(pool, GuardedCircuit(CircuitBreaker("database", BreakerPolicy()), SystemClock()))
    yield guarded
    await guarded.close()


def added(observer: psycopg.Connection) -> list[int]:
    return [row[0] for row in observer.execute("select id from public.added order by 1")]


def sessions(observer: psycopg.Connection) -> list[str]:
    """What each connection of the pool does."""
    mine = "datname = current_database() and application_name = %s"
    states = f"select state from pg_stat_activity where {mine} order by 1".encode()
    return [row[0] for row in observer.execute(states, (NAME,))]


async def pid_of(pool: GuardedConnection) -> int:
    return int((await pool.execute(PID))[0][0])


async def test_nobody_sees_anything_of_it_before_the_last_statement(
    pool: GuardedConnection, observer: psycopg.Connection
) -> None:
    seen = []

    async def both() -> str:
        for number in (1, 2):
            await pool.execute(ADD, (number,))
            seen.append(added(observer))
        return "done"

    assert await pool.together(both) == "done"
    assert seen == [[], []]
    assert added(observer) == [1, 2]
    assert sessions(observer) == ["idle"]


@pytest.mark.parametrize("error", [ValueError("no"), asyncio.CancelledError()])
async def test_what_is_raised_takes_all_of_it_back(
    pool: GuardedConnection, observer: psycopg.Connection, error: BaseException
) -> None:
    async def one() -> None:
        await pool.execute(ADD, (1,))
        raise error

    before = await pid_of(pool)
    with pytest.raises(type(error)):
        await pool.together(one)
    assert added(observer) == []
    assert sessions(observer) == ["idle"]
    assert await pid_of(pool) == before


async def test_nothing_is_executed_or_committed_behind_a_failure_that_was_caught(
    pool: GuardedConnection, observer: psycopg.Connection
) -> None:
    async def careless() -> None:
        await pool.execute(ADD, (1,))
        with pytest.raises(DatabaseError, match="22012"):
            await pool.execute("select 1 / 0")

    with pytest.raises(DatabaseError, match="an earlier statement"):
        await pool.together(careless)
    assert added(observer) == []
    assert sessions(observer) == ["idle"]


async def test_a_connection_that_is_lost_in_between_is_not_opened_again_for_the_rest(
    pool: GuardedConnection, observer: psycopg.Connection
) -> None:
    async def struck() -> None:
        await pool.execute(ADD, (1,))
        observer.execute("select pg_terminate_backend(%s, 5000)", (await pid_of(pool),))
        with pytest.raises(ConnectionLost):
            await pool.execute(ADD, (2,))
        await pool.execute(ADD, (3,))

    with pytest.raises(DatabaseError, match="an earlier statement"):
        await pool.together(struck)
    assert added(observer) == []
    await pool.execute(ADD, (4,))
    assert added(observer) == [4]


async def test_a_connection_that_ends_while_nobody_asks_leaves_the_pool_whole(
    pool: GuardedConnection, observer: psycopg.Connection
) -> None:
    async def struck() -> None:
        observer.execute("select pg_terminate_backend(%s, 5000)", (await pid_of(pool),))
        raise ValueError("and so on")

    with pytest.raises(ValueError, match="and so on"):
        await pool.together(struck)
    await pool.together(lambda: pool.execute(ADD, (1,)))
    assert added(observer) == [1]
    assert sessions(observer) == ["idle"]


async def test_a_connection_that_ends_while_nobody_asks_is_not_replaced_for_what_follows(
    pool: GuardedConnection, observer: psycopg.Connection
) -> None:
    held: list[psycopg.AsyncConnection[Any]] = []

    async def closed() -> None:
        await pool.execute(ADD, (1,))
        held.extend(each._connection for each in pool.pool._all if each._connection is not None)
        held[0].pgconn.finish()
        await pool.execute(ADD, (2,))

    with pytest.raises(ConnectionLost):
        await pool.together(closed)
    assert added(observer) == []
    await pool.execute(ADD, (3,))
    assert added(observer) == [3]


async def test_an_open_breaker_leaves_no_connection_in_a_transaction(
    pool: GuardedConnection, observer: psycopg.Connection
) -> None:
    async def interrupted() -> None:
        await pool.execute(ADD, (1,))
        pool.breaker.force_open()
        await pool.execute(ADD, (2,))

    before = await pid_of(pool)
    with pytest.raises(DatabaseBreakerOpen):
        await pool.together(interrupted)
    assert sessions(observer) == ["idle"]
    with pytest.raises(DatabaseBreakerOpen):
        await pool.together(lambda: pool.execute(ADD, (3,)))
    pool.breaker.force_closed()
    assert await pid_of(pool) == before
    assert added(observer) == []


async def test_two_at_once_and_what_others_ask_meanwhile_have_connections_of_their_own(
    pool: GuardedConnection, observer: psycopg.Connection
) -> None:
    both = asyncio.Barrier(2)

    async def one(number: int) -> int:
        await pool.execute(ADD, (number,))
        await both.wait()
        assert await pool.execute("select id from public.added") == [(number,)]
        await both.wait()
        return await pid_of(pool)

    first, second = await asyncio.gather(*(pool.together(lambda number=number: one(number)) for number in (1, 2)))
    assert first != second

    async def with_a_child() -> list[tuple[int, ...]]:
        await pool.execute(ADD, (3,))
        return await asyncio.create_task(pool.execute("select id from public.added order by 1"))

    assert await pool.together(with_a_child) == [(1,), (2,)]
    assert added(observer) == [1, 2, 3]


async def test_what_waits_for_the_commit_runs_behind_it_with_the_connection_given_back(
    pool: GuardedConnection, observer: psycopg.Connection
) -> None:
    heard = []

    async def then() -> None:
        heard.append((added(observer), pool.pool.sizes()["lent"], pool.transaction))

    async def one() -> None:
        assert pool.transaction is not None
        pool.transaction.after_commit(then)
        await pool.execute(ADD, (1,))
        assert heard == []

    async def in_vain() -> None:
        await one()
        raise ValueError("no")

    await pool.together(lambda: pool.together(one))
    assert heard == [([1], 0, None)]
    heard.clear()
    with pytest.raises(ValueError, match="no"):
        await pool.together(in_vain)
    assert heard == []


async def test_a_rollback_that_is_not_waited_for_closes_the_connection(
    pool: GuardedConnection, observer: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    execute = Session.execute

    async def cancelled(self: Session, statement: str, params: object = None) -> object:
        if statement == "rollback":
            raise asyncio.CancelledError
        return await execute(self, statement, params)  # type: ignore[arg-type]

    monkeypatch.setattr(Session, "execute", cancelled)

    async def failing() -> None:
        await pool.execute(ADD, (1,))
        raise ValueError("no")

    before = await pid_of(pool)
    with pytest.raises(asyncio.CancelledError):
        await pool.together(failing)
    assert await pid_of(pool) != before
    assert added(observer) == []
