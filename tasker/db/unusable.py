"""Sessions that cannot be used although the server answers: they accept no writes, or the server lacks resources.

A standby, a fenced primary and a database with `default_transaction_read_only` accept connections and refuse writes.
The answering server may change at any time (a failover, several hosts in the URL), so another connection is opened.
"""

from __future__ import annotations

from typing import Any

import psycopg

from tasker.db.database import describe_url, has_several_hosts
from tasker.errors import DatabaseUnavailable

READ_ONLY = "25006"
UNUSABLE = (READ_ONLY, "40001", "53000", "53100", "53200", "53300", "58030")
"""SQLSTATEs of sessions and servers that cannot be used.

The sessions accept no writes or conflict with a standby's recovery (READ COMMITTED has no other serialization failure);
the servers lack disk space, memory or connections, or have failing disks.
"""
REPORTED = ("default_transaction_read_only", "in_hot_standby")
"""Parameters that the server reports without a query."""


class Writes:
    """State whether this process's sessions for one URL accept writes.

    When a session refuses a write, all sessions opened until then are replaced: some may belong to a server that is no
    longer the primary and return outdated data.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._accepted: bool | None = None
        """True or False as seen by the last opened session; None if no write was refused yet."""
        self.generation = 0
        """Number of refusals; sessions of an earlier generation are replaced."""

    def refused(self, generation: int) -> bool:
        """Record that a session of that generation refused a write. Returns True if it is the first to do so."""
        if generation != self.generation:
            return False
        self._accepted = False
        self.generation += 1
        return True

    async def require(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Close a new session that accepts no writes, and raise `DatabaseUnavailable`.

        Checks only after a write was refused: a process that only reads may use a standby.
        """
        if self._accepted is None:
            return
        try:
            if (reports_read_only(connection) or not self._accepted) and await _is_read_only(connection):
                raise DatabaseUnavailable(f"{describe_url(self._url)} accepts no writes", hint=_hint(self._url))
        except BaseException:
            await connection.close()
            raise
        self._accepted = True


_writes: dict[str, Writes] = {}


def writes_of(url: str) -> Writes:
    """Return the write state that all connections of this process to one URL share."""
    return _writes.setdefault(url, Writes(url))


def is_unusable(error: psycopg.Error) -> bool:
    """Return True if the statement was refused because of the session or the server, not because of its content."""
    return error.sqlstate in UNUSABLE


def unusable(url: str, error: psycopg.Error) -> DatabaseUnavailable:
    """Return the error for a statement for which `is_unusable` is True: nothing of it was done."""
    return DatabaseUnavailable(
        f"{describe_url(url)} cannot be used: {error.diag.message_primary} ({error.sqlstate})",
        metadata={"sqlstate": error.sqlstate},
        hint=_hint(url) if error.sqlstate == READ_ONLY else "see the log of the PostgreSQL server",
    )


def reports_read_only(connection: psycopg.AsyncConnection[Any]) -> bool:
    """Return True if the server reported a read-only session; no round trip. Through a pooler it may be outdated."""
    return any(connection.info.parameter_status(name) == "on" for name in REPORTED)


async def _is_read_only(connection: psycopg.AsyncConnection[Any]) -> bool:
    row = await (await connection.execute("show transaction_read_only", prepare=False)).fetchone()
    return row is not None and row[0] == "on"


def _hint(url: str) -> str:
    hint = "it is a standby, or default_transaction_read_only is on"
    if has_several_hosts(url):
        return f"{hint}; add target_session_attrs=read-write to the URL, so that the driver chooses the primary"
    return f"{hint}; connect to the primary"
