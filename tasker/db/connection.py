"""Asynchronous connections of the hot path: driver connections in autocommit mode, one transaction per statement.

The rest of the package uses a `Connection` or a `Pool` of them, and gets Tasker's errors instead of the driver's.
"""

from __future__ import annotations

import asyncio
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import psycopg
from psycopg.pq import TransactionStatus

from tasker.db.database import connect, conninfo, lost, refuses_settings, unavailable, unreadable
from tasker.db.pace import ReconnectPause, fullness_of, outage_of
from tasker.db.session import Params, Rows, Session
from tasker.db.unusable import READ_ONLY, is_unusable, reports_read_only, unusable, writes_of
from tasker.errors import ConnectionLost, DatabaseError, DatabaseUnavailable, LockTimeout, StatementTimeout

REFUSED_DATA = ("22", "23", "54")
"""SQLSTATE classes of data that cannot be stored; the caller isolates the row that causes them."""
LOST = ("08", "57P", "25P03", "25P04")
"""SQLSTATEs of a server that is stopping, stopped or starting, and of connections that ended."""
CANCELLED, LOCKED = "57014", "55P03"
T = TypeVar("T")


class Execute(Protocol):
    """Callable that runs a statement as `Statements.execute` does."""

    async def __call__(self, statement: str, params: Params = None, /) -> Rows: ...


class DataRefused(DatabaseError):
    """Error raised if the database refused the values of a call, so repeating it cannot succeed."""

    retryable: bool = False
    error_type = "data_refused"


class Statements(ABC):
    """Executor that runs each statement in its own transaction: a connection or a pool."""

    async def call(self, expression: str, args: dict[str, Any] | str) -> dict[str, Any]:
        """Call a function that takes and returns jsonb, e.g. `tasker.claim_v1(%s::jsonb)`.

        `args` is a mapping or its JSON text; the result is a mapping (empty if the function returns null). Raises the
        errors of `execute`.
        """
        text = args if isinstance(args, str) else json.dumps(args)
        rows = await self.execute(f"select {expression}", (text,))
        answer = rows[0][0]
        return answer if isinstance(answer, dict) else {}

    @abstractmethod
    async def execute(self, statement: str, params: Params = None) -> Rows:
        """Run one statement and return its rows (an empty list if the statement returns none).

        Raises `DatabaseUnavailable` if there is no connection, `ConnectionLost` if it ended during the statement (the
        outcome is then unknown), `DataRefused` if the values cannot be stored, `StatementTimeout` if it ran too long,
        `LockTimeout` if it waited too long for another transaction, and `DatabaseError` for anything else.
        """

    @abstractmethod
    async def close(self) -> None:
        """Close the connections. May be called twice; a later statement reopens a connection, but fails on a pool."""


class Connection(Statements):
    """Single connection, opened on first use and reopened after a loss. Runs one statement at a time.

    Parameters: `url` of the database; `name` shown in `pg_stat_activity`; `prepare`, False for poolers that cannot keep
    prepared statements; `settings` of the session, as `-c name=value`.
    """

    def __init__(self, url: str, *, name: str = "tasker", prepare: bool = True, settings: str = "") -> None:
        self._url = url
        self._options: dict[str, Any] = {"application_name": name, "prepare_threshold": 0 if prepare else None}
        self._settings = settings
        self._connection: psycopg.AsyncConnection[tuple[Any, ...]] | None = None
        self._session: Session | None = None
        self._lock = asyncio.Lock()
        self._pace = ReconnectPause(name, outage_of(url), fullness_of(url))
        self._opened_at = 0.0
        self._writes, self._generation = writes_of(url), 0
        self._read_only = False
        """Read-only state that the server reported when the session was opened."""

    @property
    def age(self) -> float:
        """Seconds since the connection was opened; 0 while it is closed."""
        return time.monotonic() - self._opened_at if self._connection is not None else 0.0

    @property
    def is_open(self) -> bool:
        """True while there is a session that the server has not ended."""
        return self._connection is not None and not self.ended

    @property
    def ended(self) -> bool:
        """True if the server ended the session while it was idle, or no longer accepts writes.

        The next statement then fails instead of reconnecting silently, because another server may answer next and
        callers that remember earlier answers must know. A caller that does not need to know closes the connection
        first.
        """
        if self._session is None or self._connection is None:
            return False
        turned = not self._read_only and reports_read_only(self._connection)
        return turned or self._is_replaced or self._session.ended is not None

    @property
    def _is_replaced(self) -> bool:
        """True if another session of this process was refused a write since this one was opened."""
        return self._generation != self._writes.generation

    async def execute(self, statement: str, params: Params = None) -> Rows:
        async with self._lock:
            return await self._run(*await self._open(), statement, params)

    async def hold(self, use: Callable[[Execute], Awaitable[T]]) -> T:
        """Call `use` with exclusive access to this connection and return its result.

        All its statements run in one session: a lost session is not reopened. A transaction that it leaves open is
        rolled back; if the rollback fails, the connection is closed.
        """
        opened: list[tuple[psycopg.AsyncConnection[Any], Session]] = []

        async def execute(statement: str, params: Params = None, /) -> Rows:
            if not opened:
                opened.append(await self._open())
            return await self._run(*opened[0], statement, params)

        async with self._lock:
            try:
                return await use(execute)
            finally:
                if opened and self._session is opened[0][1]:
                    await self._take_back(*opened[0])

    async def _take_back(self, connection: psycopg.AsyncConnection[Any], session: Session) -> None:
        """Roll back an open transaction; close the connection if that fails."""
        try:
            if connection.info.transaction_status in (TransactionStatus.INTRANS, TransactionStatus.INERROR):
                with suppress(psycopg.Error):
                    await session.execute("rollback")
        finally:
            if connection.info.transaction_status != TransactionStatus.IDLE:
                await self.close()

    async def _run(
        self, connection: psycopg.AsyncConnection[Any], session: Session, statement: str, params: Params
    ) -> Rows:
        try:
            rows = await session.execute(statement, params)
        except psycopg.Error as error:
            raise await self._translate(error, connection, statement) from error
        if self._pace.is_refused:
            self._pace.used()
        return rows

    async def close(self) -> None:
        session, self._session = self._session, None
        connection, self._connection = self._connection, None
        if session is not None:
            session.close()
        if connection is not None:
            await connection.close()

    async def _open(self) -> tuple[psycopg.AsyncConnection[tuple[Any, ...]], Session]:
        connection, session = self._connection, self._session
        if session is not None and session.ended is None and self._is_replaced:
            session.ended = psycopg.OperationalError("another session of this process accepted no writes")
        if connection is None or session is None or (connection.closed and session.ended is None):
            async with self._pace:
                connection = await open_connection(self._url, settings=self._settings, **self._options)
                generation = self._writes.generation
                await self._writes.require(connection)
            session = Session(connection, prepare=connection.prepare_threshold is not None)
            self._connection, self._session, self._opened_at = connection, session, time.monotonic()
            self._generation, self._read_only = generation, reports_read_only(connection)
        return connection, session

    async def _translate(
        self, error: psycopg.Error, connection: psycopg.AsyncConnection[Any], statement: str
    ) -> DatabaseError:
        if connection.closed or connection.broken or is_lost(error):
            await self.close()
            return ConnectionLost(lost(self._url, error))
        if is_unusable(error):
            await self.close()
            refused = unusable(self._url, error)
            if error.sqlstate != READ_ONLY:
                self._pace.refused(refused)
            elif self._writes.refused(self._generation):
                self._pace.failed(refused)
            return refused
        return refusal(error, statement)


def is_lost(error: Exception) -> bool:
    """Return True if the server ended the session or is not up yet, as opposed to a failure of the statement.

    The driver may notice only later that the connection is closed, and behind a pooler the connection stays open.
    """
    state = getattr(error, "sqlstate", None) or ""
    return state.startswith(LOST) if state else isinstance(error, psycopg.OperationalError)


def refusal(error: psycopg.Error, statement: str) -> DatabaseError:
    """Return Tasker's error for a statement that the database refused or cancelled."""
    state = error.sqlstate or ""
    message, metadata = f"the database answered {state or 'an error'}: {error}", {"sqlstate": state}
    if state == CANCELLED:
        return StatementTimeout(
            f"{message} (statement: {statement[:80]})",
            metadata=metadata,
            hint="it may be tried again; common.database.statement_timeout_ms is how long a statement may take",
        )
    if state == LOCKED:
        return LockTimeout(
            message, metadata=metadata, hint="some transaction stays open: see pg_blocking_pids and pg_stat_activity"
        )
    return (DataRefused if is_of_data(state) else DatabaseError)(message, metadata=metadata)


def is_of_data(state: str) -> bool:
    """Return True for the SQLSTATE of a statement refused for its values; "" means refused by the driver."""
    return not state or state[:2] in REFUSED_DATA


async def open_connection(
    url: str, *, application_name: str = "tasker", settings: str = "", prepare_threshold: int | None = None
) -> psycopg.AsyncConnection[tuple[Any, ...]]:
    """Open a connection in autocommit mode; through a pooler it prepares nothing. Raises `DatabaseUnavailable`."""
    info = conninfo(url, settings=settings, application_name=application_name)
    try:
        connection = await psycopg.AsyncConnection.connect(info, autocommit=True, prepare_threshold=prepare_threshold)
        if refused := unreadable(url, connection.info):
            await connection.close()
            raise refused
        if prepare_threshold is not None:
            await _prepare_only_in_its_own_session(connection)
        return connection
    except psycopg.OperationalError as error:
        if not refuses_settings(url, error):
            raise unavailable(url, error) from error
    return await open_connection(url, application_name=application_name, prepare_threshold=prepare_threshold)


async def _prepare_only_in_its_own_session(connection: psycopg.AsyncConnection[Any]) -> None:
    try:
        if not await is_own_session(connection):
            connection.prepare_threshold = None
    except BaseException:  # the caller has no reference to it yet, also if the wait for the answer is cancelled
        await connection.close()
        raise


async def is_own_session(connection: psycopg.AsyncConnection[Any]) -> bool:
    """Return False behind a pooler, where the answering backend is not the one that answered the login.

    Prepared statements belong to a session, and the driver numbers them from 0 in every connection: behind a pooler in
    transaction mode, a connection could execute a statement that another client prepared.
    """
    row = await (await connection.execute("select pg_backend_pid()", prepare=False)).fetchone()
    return row is not None and row[0] == connection.info.backend_pid


class SyncConnection:
    """Synchronous connection for use in a separate thread (the lease keeper)."""

    def __init__(self, url: str, *, name: str = "tasker lease") -> None:
        self._url = url
        self._name = name
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

    @property
    def is_open(self) -> bool:
        """True until a call finds the connection lost."""
        return self._connection is not None

    def open(self, *, limit_ms: int) -> None:
        """Connect, with the limits of `call`. Raises `DatabaseUnavailable`."""
        if self._connection is None or self._connection.closed:
            self._connection = self._open(limit_ms)

    def call(self, expression: str, args: dict[str, Any], *, limit_ms: int) -> dict[str, Any]:
        """Call a jsonb function and block until it returns; see `Connection.call`. Raises `DatabaseUnavailable`.

        If this call opens the connection, `limit_ms` also limits connecting (at least 2 seconds), network silence and
        the running time of statements: one call that hangs may cost the lease, so the next must not hang as well.
        """
        try:
            self.open(limit_ms=limit_ms)
            assert self._connection is not None
            row = self._connection.execute(f"select {expression}".encode(), (json.dumps(args),)).fetchone()
        except psycopg.Error as error:
            self.close()
            raise DatabaseUnavailable(lost(self._url, error)) from error
        return row[0] if row and isinstance(row[0], dict) else {}

    def _open(self, limit_ms: int) -> psycopg.Connection[tuple[Any, ...]]:
        return connect(
            self._url,
            settings=f"-c statement_timeout={limit_ms} -c lock_timeout={limit_ms}",
            application_name=self._name,
            connect_timeout=-(-limit_ms // 1000),
            tcp_user_timeout=limit_ms,
        )

    def close(self) -> None:
        """Close the connection. May be called twice; a later call reopens it."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
