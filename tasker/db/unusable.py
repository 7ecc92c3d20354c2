"""Sessions that cannot be used though the server answers: they accept no writes, or the server lacks resources.

A standby, a fenced primary and a database with `default_transaction_read_only` take connections and refuse writes.
Which server answers may change at any time (a failover, several hosts in the URL), so another connection is opened.
"""

from __future__ import annotations

from typing import Any

import psycopg

from tasker.db.database import describe_url, has_several_hosts
from tasker.errors import DatabaseUnavailable

READ_ONLY = "25006"
UNUSABLE = (READ_ONLY, "40001", "53000", "53100", "53200", "53300", "58030")
"""SQLSTATEs of sessions that accept no writes or conflict with a standby's recovery (READ COMMITTED knows no other
serialization failure), and of servers without disk space, memory or connections, or with failing disks."""
REPORTED = ("default_transaction_read_only", "in_hot_standby")
"""What the server reports of a session by itself."""


class Writes:
    """Whether the sessions of this process accept writes, for one URL.

    When one refuses a write, all sessions opened until then are replaced: some may belong to a server that is the
    primary no more, and answer with its past.
    """

    def __init__(self, url: str) -> None:
        self._url = url
        self._accepted: bool | None = None
        """By the session that was opened last; None: no write was refused yet."""
        self.generation = 0
        """Grows with every refusal; sessions of an earlier one are replaced."""

    def refused(self, generation: int) -> bool:
        """A session of that generation refused a write. True when it is the first one to do so."""
        if generation != self.generation:
            return False
        self._accepted = False
        self.generation += 1
        return True

    async def require(self, connection: psycopg.AsyncConnection[Any]) -> None:
        """Close a new session that accepts no writes, and raise `DatabaseUnavailable`.

        Not before a write was refused: a process that only reads may use a standby.
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
    """What the connections of this process know together of one URL."""
    return _writes.setdefault(url, Writes(url))


def is_unusable(error: psycopg.Error) -> bool:
    """True when the statement was refused for the session or the server, and not for what it is."""
    return error.sqlstate in UNUSABLE


def unusable(url: str, error: psycopg.Error) -> DatabaseUnavailable:
    """The error for a statement that `is_unusable`: nothing of it was done."""
    return DatabaseUnavailable(
        f"{describe_url(url)} cannot be used: {error.diag.message_primary} ({error.sqlstate})",
        metadata={"sqlstate": error.sqlstate},
        hint=_hint(url) if error.sqlstate == READ_ONLY else "see the log of the PostgreSQL server",
    )


def reports_read_only(connection: psycopg.AsyncConnection[Any]) -> bool:
    """What the server has reported, without a round trip. Of a pooler it may be what was true before."""
    return any(connection.info.parameter_status(name) == "on" for name in REPORTED)


async def _is_read_only(connection: psycopg.AsyncConnection[Any]) -> bool:
    row = await (await connection.execute("show transaction_read_only", prepare=False)).fetchone()
    return row is not None and row[0] == "on"


def _hint(url: str) -> str:
    hint = "it is a standby, or default_transaction_read_only is on"
    if has_several_hosts(url):
        return f"{hint}; add target_session_attrs=read-write to the URL, so that the driver chooses the primary"
    return f"{hint}; connect to the primary"
