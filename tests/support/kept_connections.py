"""Connections of programs under test that stay open for the next test.

A new session compiles and plans every function that it calls for the first time, which is most of the work of the
server for a short test. So a closed connection is reset and handed to the next program that connects alike; what the
program has prepared is gone, what the server has compiled is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Self

import psycopg
import pytest
from psycopg import pq

from tests.support.laboratory import AS_NEW, Laboratory

OPTIONS = {"autocommit", "prepare_threshold"}
"""With which Tasker connects."""
LISTENERS = ("'tasker listen'", "'tasker wait'")
"""Names of connections that listen: they call nothing that is worth keeping, and tests count them."""
MOST = 12
"""Sessions that are kept of those that connect alike."""


class KeptConnections:
    """Open sessions by the text with which they were connected."""

    def __init__(self) -> None:
        self._free: dict[str, list[pq.abc.PGconn]] = {}

    def take(self, info: str) -> pq.abc.PGconn | None:
        """A session that was connected so; None without one."""
        free = self._free.get(info, [])
        while free:
            server = free.pop()
            if _asked(server, b"") == pq.ExecStatus.EMPTY_QUERY:  # a test may have ended it
                return server
            server.finish()
        return None

    def keep(self, info: str, server: pq.abc.PGconn) -> bool:
        """Reset a session and keep it. False if it is broken, at work, one too many, or a listener's."""
        free = self._free.setdefault(info, [])
        if any(name in info for name in LISTENERS):
            return False
        if len(free) >= MOST or server.transaction_status != pq.TransactionStatus.IDLE:
            return False
        if _asked(server, AS_NEW + b"; deallocate all") != pq.ExecStatus.COMMAND_OK:
            return False
        while server.notifies():
            pass
        free.append(server)
        return True

    def close(self) -> None:
        """Close all."""
        for free in self._free.values():
            for server in free:
                server.finish()
        self._free.clear()

    def connection_class(self) -> type[psycopg.AsyncConnection[Any]]:
        """The driver's class, whose sessions are these."""

        class KeptConnection(psycopg.AsyncConnection[Any]):
            _kept_as = ""

            @classmethod
            async def connect(cls, conninfo: str = "", **options: Any) -> Self:  # type: ignore[override]
                if options.keys() != OPTIONS:  # another program's connection
                    return await super().connect(conninfo, **options)
                if server := kept.take(conninfo):
                    connection = cls(server)  # type: ignore[arg-type]
                    connection._autocommit = options["autocommit"]
                    connection.prepare_threshold = options["prepare_threshold"]
                else:
                    connection = await super().connect(conninfo, **options)
                connection._kept_as = conninfo
                return connection

            async def close(self) -> None:
                if self._kept_as and not self.closed and kept.keep(self._kept_as, self.pgconn):
                    self._closed, self.pgconn = True, _closed()
                await super().close()

        kept = self
        return KeptConnection


def _asked(server: pq.abc.PGconn, statements: bytes) -> pq.ExecStatus:
    try:
        server.nonblocking = 0
        status = pq.ExecStatus(server.exec_(statements).status)
        server.nonblocking = 1
    except psycopg.OperationalError:
        return pq.ExecStatus.FATAL_ERROR
    return status


@contextmanager
def lent_database(laboratory: Laboratory, kept: KeptConnections) -> Iterator[str]:
    """Lend a database without rows of other tests, to which programs connect by sessions that have served them."""
    with pytest.MonkeyPatch.context() as patched:
        url = laboratory.sessions.url
        patched.setattr(psycopg, "AsyncConnection", kept.connection_class())
        yield url
    if not laboratory.clean():
        kept.close()


@cache
def _closed() -> Any:
    """A connection that is closed."""
    server = pq.PGconn.connect(b"host=/nonexistent")
    server.finish()
    return server
