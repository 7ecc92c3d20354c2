"""Engine database as a messaging backend uses it: statements and notifications, with errors as `MessagingError`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import Any

import psycopg
from psycopg import sql

from tasker.db.connection import Connection, open_connection
from tasker.errors import BackendUnavailable, DatabaseError, DatabaseUnavailable, MessagingError


class DatabaseChannel:
    """A `tasker.messaging.port.SqlChannel` with one connection for statements and one more for each LISTEN."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._connection = Connection(url, name="tasker messaging")

    async def execute(self, statement: str, params: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement in its own transaction and return its rows. Raises `MessagingError`."""
        if self._connection.ended:
            await self._connection.close()
        try:
            return await self._connection.execute(statement, params or None)
        except DatabaseError as error:
            raise _translated(error) from error

    def listen(self, channels: Sequence[str]) -> AbstractAsyncContextManager[AsyncIterator[tuple[str, str]]]:
        """Return a context that iterates over (channel, payload) of each notification. Raises `MessagingError`."""
        return self._listen(channels)

    @asynccontextmanager
    async def _listen(self, channels: Sequence[str]) -> AsyncGenerator[AsyncIterator[tuple[str, str]], None]:
        try:
            connection = await open_connection(self._url, application_name="tasker messaging listen")
        except DatabaseError as error:
            raise _translated(error) from error
        try:
            for channel in channels:
                await connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
            # the driver's generator holds the connection's lock until it is closed
            async with aclosing(connection.notifies()) as notifications:
                yield ((notify.channel, notify.payload) async for notify in notifications)
        except psycopg.Error as error:
            raise BackendUnavailable(f"listening ended: {error}") from error
        finally:
            await connection.close()

    async def close(self) -> None:
        """Close the connection. May be called twice."""
        await self._connection.close()


def _translated(error: DatabaseError) -> MessagingError:
    kind = BackendUnavailable if isinstance(error, DatabaseUnavailable) else MessagingError
    return kind(error.message, hint=error.hint)
