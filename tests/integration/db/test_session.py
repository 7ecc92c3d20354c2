"""Statements past the driver's cursors: what they are given and answer, and how they end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest

from tasker.db import session
from tasker.db.connection import Connection
from tasker.errors import ConnectionLost

BUSY = "select count(*) from pg_stat_activity where state = 'active' and query like %s and pid <> pg_backend_pid()"


@pytest.fixture
async def connection(module_database_url: str) -> AsyncIterator[Connection]:
    connection = Connection(module_database_url, name="tasker test session")
    yield connection
    await connection.close()


@pytest.fixture
async def other(module_database_url: str) -> AsyncIterator[Connection]:
    connection = Connection(module_database_url)
    yield connection
    await connection.close()


async def under_way(other: Connection, statement: str) -> None:
    while await other.execute(BUSY, (f"%{statement}%",)) != [(1,)]:
        await asyncio.sleep(0)


async def test_values_go_and_come_as_with_the_drivers_cursors(connection: Connection, module_database_url: str) -> None:
    given = {"text": "a%s", "number": 2**40, "none": None, "list": ["x", None], "json": '{"n": 99999999999999999999}'}
    statement = "select %(text)s::text, %(number)s + 1, %(none)s::text, %(list)s::text[], %(json)s::jsonb, 7 %% 4, '%%'"
    async with await psycopg.AsyncConnection.connect(module_database_url) as driver:
        expected = await (await driver.execute(statement.encode(), given)).fetchall()
    assert await connection.execute(statement, given) == expected
    assert await connection.execute("select %s::text, %s", ("a%s", True)) == [("a%s", True)]
    assert await connection.execute("select '%s'") == [("%s",)], "without values nothing is put in place of it"
    assert await connection.execute("set lock_timeout to '5s'") == []


async def test_what_does_not_fit_the_socket_is_written_while_it_is_read(connection: Connection) -> None:
    text = "x" * 8_000_000
    assert await connection.execute("select %s::text || 'y'", (text,)) == [(text + "y",)]


async def test_statements_beyond_those_that_are_kept_prepared_run_too(
    connection: Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session, "MOST_PREPARED", 2)
    for number in range(4):
        assert await connection.execute(f"select {number} + %s", (1,)) == [(number + 1,)]
    prepared = await connection.execute("select count(*) from pg_prepared_statements")
    assert prepared == [(2,)]


async def test_a_statement_whose_waiter_is_cancelled_is_given_up_by_the_server(
    connection: Connection, other: Connection
) -> None:
    await connection.execute("create table public.held as select 1 as n")
    waiting = asyncio.create_task(connection.execute("select pg_sleep(600) from public.held for update"))
    await under_way(other, "pg_sleep(600) from public.held")
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    assert await other.execute("select * from public.held for update nowait") == [(1,)]
    assert await connection.execute("select 1") == [(1,)]


async def test_a_statement_that_was_cancelled_while_it_was_prepared_runs_another_time(connection: Connection) -> None:
    await connection.execute("select 1")
    for _ in range(3):
        waiting = asyncio.create_task(connection.execute("select 40 + %s", (2,)))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    assert await connection.execute("select 40 + %s", (2,)) == [(42,)]


async def test_a_connection_that_is_closed_under_a_statement_ends_it(connection: Connection, other: Connection) -> None:
    waiting = asyncio.create_task(connection.execute("select pg_sleep(601)"))
    await under_way(other, "pg_sleep(601)")
    await connection.close()
    with pytest.raises(ConnectionLost):
        await waiting
    assert await connection.execute("select 1") == [(1,)]


async def test_a_server_that_ends_an_idle_connection_is_noticed_by_the_next_statement(
    connection: Connection, other: Connection
) -> None:
    ((pid,),) = await connection.execute("select pg_backend_pid()")
    await other.execute("select pg_terminate_backend(%s, 5000)", (pid,))
    with pytest.raises(ConnectionLost):
        await connection.execute("select 1")
    assert await connection.execute("select 1") == [(1,)]


async def test_a_connection_that_the_server_speaks_on_while_nobody_asks_goes_on_and_hears_its_end(
    connection: Connection, other: Connection
) -> None:
    ((pid,),) = await connection.execute("select pg_backend_pid()")
    await connection.execute("listen spoken")
    await other.execute("notify spoken")
    assert await connection.execute("select pg_backend_pid()") == [(pid,)]
    assert not connection.ended
    await other.execute("notify spoken")
    await other.execute("select pg_terminate_backend(%s, 5000)", (pid,))
    assert connection.ended
