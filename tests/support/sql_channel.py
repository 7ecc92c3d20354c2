"""A small `SqlChannel` over psycopg, for the tests of backends."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Any

import psycopg
from psycopg import sql

from tasker.errors import DatabaseError


class PsycopgChannel:
    """One connection for statements, one more for each LISTEN."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn
        self._lock = asyncio.Lock()
        self._connection: psycopg.AsyncConnection[tuple[Any, ...]] | None = None

    async def execute(self, statement: str, params: Sequence[Any] | None = None) -> list[tuple[Any, ...]]:
        async with self._lock:
            if self._connection is None:
                self._connection = await psycopg.AsyncConnection.connect(self._dsn, autocommit=True)
            try:
                cursor = await self._connection.execute(statement.encode(), params)
                return await cursor.fetchall()
            except psycopg.Error as error:
                raise DatabaseError(str(error)) from error

    @asynccontextmanager
    async def listen(self, channels: Sequence[str]) -> AsyncIterator[AsyncIterator[tuple[str, str]]]:
        connection = await psycopg.AsyncConnection.connect(self._dsn, autocommit=True)
        try:
            for channel in channels:
                await connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
            # the driver's generator holds the connection's lock until it is closed
            async with aclosing(connection.notifies()) as notifications:
                yield ((notify.channel, notify.payload) async for notify in notifications)
        finally:
            await connection.close()

    async def close(self) -> None:
        if self._connection is not None:
            await self._connection.close()
            self._connection = None
