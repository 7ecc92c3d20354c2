"""Connections for outside callers, with a circuit breaker: while the database keeps failing, calls fail at once.

The engine's own work never uses them: an error of one caller must not delay tasks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tasker.db.connection import Connection, Execute
from tasker.db.pool import Pool
from tasker.db.session import Params, Rows
from tasker.db.transactions import SharedTransactions, Transaction
from tasker.errors import DatabaseBreakerOpen, DatabaseError, DatabaseUnavailable, TooManyConnections
from tasker.resilience.breaker import GuardedCircuit

T = TypeVar("T")
OUTAGE = ("53", "57", "58")
"""SQLSTATE classes of a reachable database that cannot serve: no resources, stopping or cancelled, broken disks."""


class GuardedConnection(SharedTransactions):
    """Pool with a circuit breaker: while it is open, calls raise `DatabaseBreakerOpen` instead of waiting for timeouts.

    A caller that waited for a connection checks the breaker when it gets one, so that waiting callers do not all repeat
    a failing call.
    """

    def __init__(self, pool: Pool[Connection], breaker: GuardedCircuit) -> None:
        self.pool, self.breaker = pool, breaker

    async def execute(self, statement: str, params: Params = None) -> Rows:
        """Execute a statement as `Pool.execute`. Raises `DatabaseBreakerOpen` while the breaker is open."""
        if (transaction := self.transaction) is not None:
            return await transaction.execute(statement, params)

        def use(connection: Connection) -> Awaitable[Rows]:
            return self.breaker.call(lambda: connection.execute(statement, params), _refusal, is_outage)

        return await self.pool.lend(use)

    async def together(self, use: Callable[[], Awaitable[T]]) -> T:
        """Run `use` in one transaction; see `SharedTransactions.together`.

        The breaker guards each statement but not the rollback, so a connection always returns without a transaction.
        """
        if self.transaction is not None:
            return await use()

        async def committed(execute: Execute) -> tuple[Transaction, T]:
            transaction = Transaction(self, self._guarded(execute))
            return transaction, await transaction.around(use)

        transaction, answer = await self.pool.lend(lambda connection: connection.hold(committed))
        await transaction.run_callbacks()
        return answer

    def _guarded(self, execute: Execute) -> Execute:
        async def guarded(statement: str, params: Params = None, /) -> Rows:
            return await self.breaker.call(lambda: execute(statement, params), _refusal, is_outage)

        return guarded

    async def watch(self, statement: str, params: Params = None) -> Rows:
        """Execute a statement regardless of the breaker's state; success lets callers try again at once."""
        rows = await self.pool.execute(statement, params)
        self.breaker.encouraged()
        return rows

    async def close(self) -> None:
        await self.pool.close()


def is_outage(error: Exception) -> bool:
    """Return True for an error of an unhealthy database.

    A statement refused for its content, or one session too many, shows that the database is healthy.
    """
    if isinstance(error, DatabaseUnavailable):
        return not isinstance(error, TooManyConnections)
    return isinstance(error, DatabaseError) and str(error.metadata.get("sqlstate"))[:2] in OUTAGE


def _refusal(seconds: float) -> DatabaseBreakerOpen:
    return DatabaseBreakerOpen(
        f"the database keeps failing: not retried for {seconds:.1f} s",
        retry_after=seconds,
        hint="Tasker tries again automatically; check that the database runs and can be reached",
    )
