"""Connections: time-outs that end what hangs, errors with a type, opened again after they were lost."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import AsyncIterator, Mapping
from urllib.parse import quote

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from tasker.db.connection import Connection, DataRefused, open_connection
from tasker.db.database import connect, lost, unavailable, with_statement_timeout
from tasker.db.limits import ENCODING, FIXED, MIGRATION, SESSION
from tasker.db.migrate import upgrade
from tasker.db.pace import outage_of
from tasker.errors import (
    ConnectionLost,
    DatabaseUnavailable,
    LockTimeout,
    StatementTimeout,
    TooManyConnections,
    UsageError,
)
from tasker.resilience.outage import QUIET_SECONDS
from tests.support.fleets.swallowing import relay
from tests.support.servers.pooler import transaction_pooler

HASTY = "-c statement_timeout=500"


@pytest.fixture
async def connection(database_url: str) -> AsyncIterator[Connection]:
    opened = Connection(database_url, settings=HASTY)
    yield opened
    await opened.close()


async def test_a_runaway_statement_is_cancelled_and_the_connection_stays_good(connection: Connection) -> None:
    with pytest.raises(StatementTimeout) as caught:
        await connection.execute("select pg_sleep(60)")

    error = caught.value
    assert error.retryable
    assert error.metadata["sqlstate"] == "57014"
    assert "select pg_sleep(60)" in error.message
    assert "common.database.statement_timeout_ms" in str(error.hint)
    assert await connection.execute("select 1") == [(1,)]


async def test_waiting_for_a_lock_ends_too(database_url: str) -> None:
    connection = Connection(database_url, settings="-c lock_timeout=50")
    with psycopg.connect(database_url) as holder:
        holder.execute("select pg_advisory_xact_lock(7)")
        with pytest.raises(LockTimeout) as caught:
            await connection.execute("select pg_advisory_xact_lock(7)")
    await connection.close()

    assert caught.value.retryable
    assert caught.value.metadata["sqlstate"] == "55P03"
    assert "pg_blocking_pids" in str(caught.value.hint)


async def test_what_the_driver_refuses_for_its_value_is_not_called_retryable(connection: Connection) -> None:
    with pytest.raises(DataRefused, match="NUL") as caught:
        await connection.execute("select %s::text", ("a\0b",))
    assert not caught.value.retryable
    assert await connection.execute("select 1") == [(1,)]


async def test_every_session_has_the_chosen_settings(database_url: str) -> None:
    chosen = {**SESSION, **FIXED, "client_encoding": ENCODING}
    query = "select name, replace(setting, ', ', ',') from pg_settings where name = any (%s)"
    asynchronous = Connection(database_url)
    found: dict[str, str] = dict(await asynchronous.execute(query, (list(chosen),)))
    await asynchronous.close()
    with connect(database_url) as synchronous:
        assert dict(synchronous.execute(query, [list(chosen)])) == found

    on_tcp = [name for name in chosen if not name.startswith("tcp_") or "host=" not in database_url]
    assert {name: found[name] for name in on_tcp} == {name: str(chosen[name]) for name in on_tcp}


async def test_the_statement_timeout_of_the_settings_counts_and_what_the_url_says_counts_more(
    database_url: str,
) -> None:
    separator = "&" if "?" in database_url else "?"
    own = f"{database_url}{separator}options=-c%20statement_timeout%3D70&application_name=mine"
    for url, expected in ((database_url, "1234ms"), (own, "70ms")):
        connection = Connection(with_statement_timeout(url, 1234))
        assert await connection.execute("show statement_timeout") == [(expected,)]
        await connection.close()


async def test_a_pooler_that_takes_no_settings_is_connected_to_without_and_that_is_told_once(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    with transaction_pooler(database_url) as pooler, caplog.at_level(logging.WARNING, "tasker.database"):
        for _ in range(2):
            connection = Connection(with_statement_timeout(pooler, 1234))
            assert await connection.execute("select 1") == [(1,)]
            await connection.close()
        with connect(pooler) as synchronous:
            assert synchronous.execute("select 1").fetchone() == (1,)

    (line,) = [record.getMessage() for record in caplog.records]
    assert line.startswith("session_settings_refused server=127.0.0.1:")
    assert "alter role" in line


async def test_sessions_of_a_pooler_whose_dates_cannot_be_read_are_refused_with_the_remedy(database_url: str) -> None:
    with psycopg.connect(database_url, autocommit=True) as admin:
        user, database = admin.info.user, admin.info.dbname
        admin.execute(f"alter role {user} in database {database} set datestyle = 'SQL, DMY'".encode())
    with transaction_pooler(database_url) as pooler:
        with pytest.raises(DatabaseUnavailable, match="DateStyle 'SQL, DMY', expected ISO") as caught:
            await Connection(pooler).execute("select 1")
        with pytest.raises(DatabaseUnavailable, match="DateStyle 'SQL, DMY', expected ISO"):
            connect(pooler)

    assert not caught.value.retryable
    assert f"alter role {user} set datestyle = 'ISO, MDY'" in str(caught.value.hint)


def test_migrations_have_no_statement_timeout(database_url: str) -> None:
    with connect(database_url, session=MIGRATION) as connection:
        assert connection.execute("show statement_timeout").fetchone() == ("0",)


def test_an_upgrade_runs_longer_than_a_statement_may(empty_database_url: str) -> None:
    assert upgrade(with_statement_timeout(empty_database_url, 30_001))


async def test_a_connection_that_was_lost_is_opened_again(database_url: str) -> None:
    connection = Connection(database_url)
    ((pid,),) = await connection.execute("select pg_backend_pid()")
    with psycopg.connect(database_url, autocommit=True) as other:
        other.execute("select pg_terminate_backend(%s)", [pid])
    with pytest.raises(DatabaseUnavailable, match="was lost: "):
        await connection.execute("select 1")

    assert await connection.execute("select 1") == [(1,)]
    await connection.close()


async def test_server_that_dies_during_a_send_is_a_lost_connection(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    statement = "select length(%s)"
    async with relay(database_url) as network:
        connection = Connection(network.url)
        assert await connection.execute(statement, ("x",)) == [(1,)]
        network.passes.clear()
        sending = asyncio.ensure_future(connection.execute(statement, ("x" * 20_000_000,)))
        while not is_sending(connection):
            await asyncio.sleep(0.01)
        await network.end()
        with pytest.raises(ConnectionLost):
            await sending
        await connection.close()

    assert caplog.records == [], "a callback of the event loop failed"


def is_sending(connection: Connection) -> bool:
    """The network takes no more of the statement."""
    session = connection._session
    return session is not None and session._server.flush() == 1


@pytest.mark.parametrize(
    ("change", "hint"),
    [
        ({"dbname": "no_such_database"}, "create it with tasker db upgrade"),
        ({"user": "no_such_role"}, "create the role (createuser no_such_role)"),
        ({"user": "crowded"}, "the server has no connection left"),
    ],
)
def test_login_that_is_refused_says_what_to_do(database_url: str, change: Mapping[str, str], hint: str) -> None:
    url = conninfo_to_url(database_url, change)
    with psycopg.connect(database_url, autocommit=True) as admin:
        admin.execute("create role crowded login connection limit 0")
        try:
            with pytest.raises(DatabaseUnavailable) as caught:
                connect(url)
        finally:
            admin.execute("drop role crowded")
    assert hint in str(caught.value.hint)
    assert caught.value.retryable == (change.get("user") == "crowded")


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ("sorry, too many clients already", "the server has no connection left"),
        ("remaining connection slots are reserved for roles with the SUPERUSER attribute", "has no connection left"),
        ("no more connections allowed (max_client_conn)", "the server has no connection left"),  # PgBouncer
        ('password authentication failed for user "ada"', "correct the user name or the password"),
        ('no pg_hba.conf entry for host "1.2.3.4", user "ada"', "let the role ada connect to shop from this host"),
    ],
)
def test_refusal_that_no_test_server_gives_says_what_to_do(said: str, hint: str) -> None:
    error = unavailable(
        "postgresql://ada@db/shop", psycopg.OperationalError(f'connection to server at "db" failed: FATAL:  {said}')
    )
    assert hint in str(error.hint)
    is_full = "no connection left" in hint
    assert (isinstance(error, TooManyConnections), error.retryable) == (is_full, is_full)


@pytest.mark.parametrize("does", ["is shutting down", "is starting up", "is in recovery mode"])
def test_a_server_that_stops_or_starts_is_away_and_refuses_no_session(does: str) -> None:
    """So that the log tells of an outage, and a pool gives up no connection."""
    error = unavailable(
        "postgresql://ada@db/shop", psycopg.OperationalError(f"connection failed: FATAL:  the database system {does}")
    )
    assert type(error) is DatabaseUnavailable
    assert error.retryable


def conninfo_to_url(url: str, change: Mapping[str, str]) -> str:
    """The same server, as somebody else or another database."""
    parts = {**conninfo_to_dict(url), **change}
    host, port = quote(str(parts["host"]), safe=""), parts.get("port", 5432)
    return f"postgresql://{parts['user']}@/{parts['dbname']}?host={host}&port={port}"


def set_read_only(url: str, value: str) -> None:
    with psycopg.connect(url, autocommit=True, options="-c default_transaction_read_only=off") as admin:
        admin.execute(f'alter database "{admin.info.dbname}" set default_transaction_read_only = {value}')


async def test_read_only_session_is_replaced_until_writes_are_accepted(
    database_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = Connection(database_url), Connection(database_url)
    write = "create table public.written as select 1"
    await first.execute("select 1")
    set_read_only(database_url, "on")
    await first.execute("set default_transaction_read_only = on")
    await second.execute("select 1")  # nobody has written yet: a reader may go on
    with pytest.raises(DatabaseUnavailable, match="cannot be used: cannot execute CREATE TABLE AS in a read-only"):
        await first.execute(write)
    with pytest.raises(ConnectionLost, match="another session of this process accepted no writes"):
        await second.execute("select 1")
    with pytest.raises(DatabaseUnavailable, match="accepts no writes") as caught:
        await second.execute("select 1")
    set_read_only(database_url, "off")
    await first.execute(write)
    assert await second.execute("select * from public.written") == [(1,)]
    for connection in (first, second):
        await connection.close()

    assert not isinstance(caught.value, ConnectionLost), "nothing was done"
    assert "connect to the primary" in str(caught.value.hint)
    assert [line.split()[0] for line in caplog.messages] == ["database_unreachable", "database_reconnected"]


async def test_server_without_resources_is_one_outage(
    database_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(outage_of(database_url), "now", lambda: now)
    connection = Connection(database_url)
    full = "do $$ begin raise exception 'no space left' using errcode = '53100'; end $$"
    for _ in range(3):
        with pytest.raises(DatabaseUnavailable, match="no space left"):
            await connection.execute(full)
        assert await connection.execute("select 1") == [(1,)]
    now += QUIET_SECONDS
    await connection.execute("select 1")
    await connection.close()

    assert [line.split()[0] for line in caplog.messages] == ["database_unreachable", "database_reconnected"]


def test_a_lost_connection_is_told_in_one_line() -> None:
    said = lost("postgresql://somebody:secret-word@host/db", OSError("closed unexpectedly\n\tThis probably means\n"))

    assert said == "the connection to database 'db' on host was lost: closed unexpectedly This probably means"


async def test_a_server_that_is_not_there_is_told_once_and_without_the_password(
    caplog: pytest.LogCaptureFixture,
) -> None:
    url = f"postgresql://somebody:secret-word@127.0.0.1:{free_port()}/none"
    connections = [Connection(url, name="tasker claim"), Connection(url, name="tasker result")]
    with caplog.at_level(logging.WARNING, "tasker.database"):
        for connection in connections * 2:
            with pytest.raises(DatabaseUnavailable) as caught:
                await connection.execute("select 1")

    assert [record.getMessage().split()[0] for record in caplog.records] == ["database_unreachable"]
    assert "127.0.0.1" in caplog.text
    assert "secret-word" not in caplog.text + str(caught.value)


async def test_a_pause_before_the_next_attempt_ends_with_whoever_waits() -> None:
    connection = Connection(f"postgresql://somebody@127.0.0.1:{free_port()}/none")
    with pytest.raises(DatabaseUnavailable):
        await connection.execute("select 1")
    waiting = asyncio.create_task(connection.execute("select 1"))
    await asyncio.sleep(0)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_a_connection_that_is_given_up_while_it_is_looked_at_is_closed(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def slow(connection: psycopg.AsyncConnection[tuple[int]]) -> bool:
        await connection.execute("select pg_sleep(600)")
        return True

    monkeypatch.setattr("tasker.db.connection.is_own_session", slow)
    sessions = "select pid, state from pg_stat_activity where application_name = 'tasker given up'"
    with psycopg.connect(database_url, autocommit=True) as other:
        opening = asyncio.create_task(
            open_connection(database_url, application_name="tasker given up", prepare_threshold=0)
        )
        async with asyncio.timeout(60):
            while [state for _, state in other.execute(sessions).fetchall()] != ["active"]:
                await asyncio.sleep(0.02)
            opening.cancel()
            with pytest.raises(asyncio.CancelledError) as caught:
                await opening
            while other.execute(sessions).fetchall():
                await asyncio.sleep(0.02)
    assert caught.value, "its frames are kept: it is not closed by being forgotten"


@pytest.mark.parametrize("password", ["pa%zzword", "pa/word", "12/word", "pa@word", "%00word"])
def test_a_url_that_cannot_be_read_says_what_to_encode_and_not_the_password(password: str) -> None:
    with pytest.raises(UsageError) as refused:
        connect(f"postgresql://u:{password}@127.0.0.1:1/x")
    assert "word" not in refused.value.message.replace("the database URL", "")
    assert "percent-encode" in str(refused.value.hint)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
