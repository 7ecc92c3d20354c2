"""Notifications over a dedicated connection whose delivery is proven periodically.

A transaction pooler accepts LISTEN and lends its session to another client; a network may drop a connection silently.
Both look like silence. Therefore the listener sends itself a notification over another connection and trusts only what
arrives (rule 22). Through a pooler a notification may arrive by chance, so the listener first checks whether the pooler
lends the session to others.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from time import perf_counter
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql

from tasker.db.connection import is_own_session, open_connection
from tasker.db.database import describe_url, host_and_port
from tasker.errors import DatabaseError, DatabaseUnavailable

Notification = tuple[str, str]
"""Channel and payload."""
Notify = Callable[[str], Awaitable[Any]]

TRIES = 3
"""Number of attempts to see a pooler lend the session to another connection."""


class ListenSilent(DatabaseError):
    """Error raised if LISTEN was accepted, but the test notification did not arrive."""

    error_type = "listen_silent"


async def listen(
    url: str,
    channels: Sequence[str],
    notify: Notify,
    *,
    proof_seconds: float,
    check_seconds: float,
    name: str = "tasker listen",
    on_proof: Callable[[float], None] = lambda seconds: None,
) -> AsyncGenerator[Notification | None, None]:
    """Yield notifications on these channels, and None each time their delivery is proven, which is the first item.

    `notify(channel)` sends an empty notification over another connection; it must arrive within `proof_seconds`, and
    the next one is sent `check_seconds` later. `name` is shown in `pg_stat_activity`. `on_proof(seconds)` gets the time
    each test notification took, measured from before it was sent. Raises `ListenSilent` if one does not arrive, and
    `DatabaseUnavailable` if a connection is lost.
    """
    connection = await open_connection(url, application_name=name)
    proof = f"tasker_proof_{uuid4().hex}"
    proven = False
    try:
        if await _is_lent(url, connection):
            raise _silent(url, proof_seconds, proven)
        listens = [sql.SQL("listen {}").format(sql.Identifier(channel)) for channel in (*channels, proof)]
        await connection.execute(sql.SQL("; ").join(listens), prepare=False)  # in one round trip
        while True:
            answered, sent = False, perf_counter()
            await notify(proof)
            for seconds in (proof_seconds, check_seconds):
                # never interrupted: the driver would lose notifications that arrived together
                async with aclosing(connection.notifies(timeout=seconds)) as notifications:
                    async for notification in notifications:
                        if notification.channel == proof:
                            on_proof(perf_counter() - sent)
                            answered = True
                        yield None if notification.channel == proof else (notification.channel, notification.payload)
                if not answered:
                    raise _silent(url, proof_seconds, proven)
                proven = True
    except psycopg.Error as error:
        raise DatabaseUnavailable(f"listening on {describe_url(url)} ended: {error}") from error
    finally:
        await connection.close()


async def _is_lent(url: str, connection: psycopg.AsyncConnection[Any]) -> bool:
    """Return True if the connection gets another session for each transaction: behind a pooler in transaction mode.

    Such a pooler lends the session that became idle last, so a second connection gets ours. Another client may be
    faster, so several attempts are made, also in reverse: while the second connection keeps its session, ours must stay
    the same.
    """
    if await is_own_session(connection):
        return False
    second = await open_connection(url, application_name="tasker listen")
    try:
        for _ in range(TRIES):
            first_session = await _session(connection)
            async with second.transaction():
                if await _session(second) == first_session or await _session(connection) != first_session:
                    return True
        return False
    finally:
        await second.close()


async def _session(connection: psycopg.AsyncConnection[Any]) -> int:
    row = await (await connection.execute("select pg_backend_pid()")).fetchone()
    return int(row[0]) if row else 0


def _silent(url: str, seconds: float, proven: bool) -> ListenSilent:
    where = host_and_port(url)
    if proven:
        return ListenSilent(f"the listening connection to {where} was silent for {seconds:g} seconds")
    return ListenSilent(
        f"LISTEN does not work through {where} (a transaction pooler?)",
        hint="set common.database.listen_url to a direct connection",
    )
