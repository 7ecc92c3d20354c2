"""Notifications over a connection of its own that proves again and again that it hears.

A transaction pooler accepts LISTEN and lends its session to somebody else; a network may swallow a connection without a
word. Both look like silence. Therefore the listener has a notification sent to itself over another connection, and
believes only what arrives (rule 22).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing
from typing import Any
from uuid import uuid4

import psycopg
from psycopg import sql

from tasker.db.connection import open_connection
from tasker.db.database import describe_url, host_and_port
from tasker.errors import DatabaseError, DatabaseUnavailable

Notification = tuple[str, str]
"""Channel and payload."""
Notify = Callable[[str], Awaitable[Any]]


class ListenSilent(DatabaseError):
    """LISTEN was accepted, and what was sent did not arrive."""

    error_type = "listen_silent"


async def listen(
    url: str, channels: Sequence[str], notify: Notify, *, proof_seconds: float, check_seconds: float
) -> AsyncGenerator[Notification | None, None]:
    """Notifications on these channels, and None each time it is proven that they arrive, first of all.

    `notify(channel)` sends an empty notification over another connection; it must arrive within `proof_seconds`, and
    another one is sent `check_seconds` later. Ends with `ListenSilent`, or `DatabaseUnavailable` when a connection is
    lost.
    """
    connection = await open_connection(url, application_name="tasker listen")
    proof = f"tasker_proof_{uuid4().hex}"
    proven = False
    try:
        for channel in (*channels, proof):
            await connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
        while True:
            await notify(proof)
            answered = False
            for seconds in (proof_seconds, check_seconds):
                # never left in the middle: the driver would lose notifications that came together
                async with aclosing(connection.notifies(timeout=seconds)) as notifications:
                    async for each in notifications:
                        answered = answered or each.channel == proof
                        yield None if each.channel == proof else (each.channel, each.payload)
                if not answered:
                    raise _silent(url, proof_seconds, proven)
                proven = True
    except psycopg.Error as error:
        raise DatabaseUnavailable(f"listening on {describe_url(url)} ended: {error}") from error
    finally:
        await connection.close()


def _silent(url: str, seconds: float, proven: bool) -> ListenSilent:
    where = host_and_port(url)
    if proven:
        return ListenSilent(f"the listening connection to {where} was silent for {seconds:g} seconds")
    return ListenSilent(
        f"LISTEN does not work through {where} (a transaction pooler?)",
        hint="set common.database.listen_url to a direct connection",
    )
