"""Asynchronous connections of the hot path: the driver's own, in autocommit mode, one statement per transaction.

Everything else in the package asks `connect` or `listen` here and sees Tasker's errors, never the driver's.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

import psycopg
from psycopg import sql

from tasker.db.database import describe_url, libpq_url
from tasker.errors import DatabaseError, DatabaseUnavailable

REFUSED_DATA = ("22", "23", "54")
"""SQLSTATE classes that mean: the data of this call cannot be stored (the caller looks for the culprit)."""


class DataRefused(DatabaseError):
    """The database refused the values of a call; repeating it changes nothing."""

    retryable: bool = False
    error_type = "data_refused"


class Connection:
    """One connection that is opened on first use and again after it was lost. One statement at a time.

    Parameters: `url` of the database; `name` shown in `pg_stat_activity`; `prepare` False for poolers that cannot keep
    prepared statements.
    """

    def __init__(self, url: str, *, name: str = "tasker", prepare: bool = True, settings: str = "") -> None:
        self._url = url
        self._options: dict[str, Any] = {"application_name": name, "prepare_threshold": 0 if prepare else None}
        if settings:
            self._options["options"] = settings
        self._connection: psycopg.AsyncConnection[tuple[Any, ...]] | None = None
        self._lock = asyncio.Lock()

    async def call(self, expression: str, args: dict[str, Any] | str) -> dict[str, Any]:
        """Call a function that takes and answers jsonb, e.g. `tasker.claim_v1(%s::jsonb)`.

        `args` is a mapping or its JSON text; the answer is a mapping (empty when the function answers null).

        Raises `DatabaseUnavailable` when the connection is lost (the outcome is then unknown), `DataRefused` when the
        values cannot be stored, `DatabaseError` for anything else.
        """
        text = args if isinstance(args, str) else json.dumps(args)
        rows = await self.execute(f"select {expression}", (text,))
        answer = rows[0][0]
        return answer if isinstance(answer, dict) else {}

    async def execute(
        self, statement: str, params: Sequence[Any] | Mapping[str, Any] | None = None
    ) -> list[tuple[Any, ...]]:
        """Run one statement; its rows, or an empty list when it has none. Errors as `call`."""
        async with self._lock:
            connection = await self._open()
            try:
                cursor = await connection.execute(statement.encode(), params)
                return await cursor.fetchall() if cursor.description else []
            except psycopg.Error as error:
                raise await self._translate(error, connection) from error

    async def close(self) -> None:
        """Close it. May be called twice; a later call opens it again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _open(self) -> psycopg.AsyncConnection[tuple[Any, ...]]:
        if self._connection is None or self._connection.closed:
            self._connection = await open_connection(self._url, **self._options)
        return self._connection

    async def _translate(self, error: psycopg.Error, connection: psycopg.AsyncConnection[Any]) -> DatabaseError:
        if connection.closed or connection.broken:
            await self.close()
            return DatabaseUnavailable(f"the connection to {describe_url(self._url)} was lost: {error}")
        state = error.sqlstate or ""
        kind = DataRefused if state[:2] in REFUSED_DATA else DatabaseError
        return kind(f"the database answered {state or 'an error'}: {error}", metadata={"sqlstate": state})


async def open_connection(url: str, **options: Any) -> psycopg.AsyncConnection[tuple[Any, ...]]:
    """A new connection in autocommit mode. Raises `DatabaseUnavailable`."""
    try:
        return await psycopg.AsyncConnection.connect(libpq_url(url), autocommit=True, **options)
    except psycopg.OperationalError as error:
        raise DatabaseUnavailable(
            f"cannot connect to {describe_url(url)}: {error}", hint="check the URL and that the server is running"
        ) from error


async def listen(
    url: str, channels: Sequence[str], *, ready: asyncio.Event | None = None
) -> AsyncIterator[tuple[str, str]]:
    """Notifications as (channel, payload) over a connection of its own. `ready` is set once LISTEN is committed.

    Ends with `DatabaseUnavailable` when the connection is lost.
    """
    connection = await open_connection(url, application_name="tasker listen")
    try:
        for channel in channels:
            await connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
        if ready is not None:
            ready.set()
        async for notification in connection.notifies():
            yield notification.channel, notification.payload
    except psycopg.Error as error:
        raise DatabaseUnavailable(f"listening on {describe_url(url)} ended: {error}") from error
    finally:
        await connection.close()


class SyncConnection:
    """A connection for a thread of its own (the lease keeper)."""

    def __init__(self, url: str, *, name: str = "tasker lease") -> None:
        self._url = url
        self._name = name
        self._connection: psycopg.Connection[tuple[Any, ...]] | None = None

    def call(self, expression: str, args: dict[str, Any]) -> dict[str, Any]:
        """As `Connection.call`, blocking."""
        try:
            if self._connection is None or self._connection.closed:
                self._connection = psycopg.connect(libpq_url(self._url), autocommit=True, application_name=self._name)
            row = self._connection.execute(f"select {expression}".encode(), (json.dumps(args),)).fetchone()
        except psycopg.Error as error:
            self.close()
            raise DatabaseUnavailable(f"the connection to {describe_url(self._url)} was lost: {error}") from error
        return row[0] if row and isinstance(row[0], dict) else {}

    def close(self) -> None:
        """Close it. May be called twice; a later call opens it again."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
