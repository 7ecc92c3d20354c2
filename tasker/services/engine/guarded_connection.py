"""The connections of those who ask from outside: while the database keeps failing they are answered at once.

The engine's own work never goes through here: a breaker must not hold up tasks because a caller met an error.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from tasker.db.connection import Connection, Execute
from tasker.db.pool import Pool
from tasker.db.session import Params, Rows
from tasker.db.together import SharedTransactions, Transaction
from tasker.errors import DatabaseBreakerOpen, DatabaseError, DatabaseUnavailable, TooManyConnections
from tasker.resilience.guard import GuardedCircuit

T = TypeVar("T")
OUTAGE = ("53", "57", "58")
"""SQLSTATE classes of a database that is there and cannot: no resources, being stopped or cancelled, broken disks."""


class GuardedConnection(SharedTransactions):
    """A pool with a circuit breaker: open, calls raise `DatabaseBreakerOpen` instead of waiting for time-outs.

    Whoever waits for a connection asks the breaker when it gets one, so what fails is not tried once more by everybody.
    """

    def __init__(self, pool: Pool[Connection], breaker: GuardedCircuit) -> None:
        self.pool, self.breaker = pool, breaker

    async def execute(self, statement: str, params: Params = None) -> Rows:
        """As `Pool.execute`. Raises `DatabaseBreakerOpen` while the breaker is open."""
        if (transaction := self.transaction) is not None:
            return await transaction.execute(statement, params)
        return await self.pool.lend(lambda connection: self._guarded(connection.execute)(statement, params))

    async def together(self, use: Callable[[], Awaitable[T]]) -> T:
        """As `SharedTransactions.together`. The breaker is asked for each statement, and not for the rollback:
        whatever it says,
        a connection comes back without a transaction."""
        if self.transaction is not None:
            return await use()

        async def committed(execute: Execute) -> tuple[Transaction, T]:
            transaction = Transaction(self, self._guarded(execute))
            return transaction, await transaction.around(use)

        transaction, answer = await self.pool.lend(lambda connection: connection.hold(committed))
        await transaction.told()
        return answer

    def _guarded(self, execute: Execute) -> Execute:
        async def guarded(statement: str, params: Params = None, /) -> Rows:
            return await self.breaker.call(lambda: execute(statement, params), _refusal, is_outage)

        return guarded

    async def watch(self, statement: str, params: Params = None) -> Rows:
        """As `Pool.execute`, whatever the breaker's state: an answer lets callers try again at once."""
        rows = await self.pool.execute(statement, params)
        self.breaker.encouraged()
        return rows

    async def close(self) -> None:
        """As `Pool.close`."""
        await self.pool.close()


def is_outage(error: Exception) -> bool:
    """True for what a sick database says; a statement that it refuses for its content, or a session too many, shows
    that it is well."""
    if isinstance(error, DatabaseUnavailable):
        return not isinstance(error, TooManyConnections)
    return isinstance(error, DatabaseError) and str(error.metadata.get("sqlstate"))[:2] in OUTAGE


def _refusal(seconds: float) -> DatabaseBreakerOpen:
    return DatabaseBreakerOpen(
        f"the database keeps failing: no further attempt for {seconds:.1f} s",
        retry_after=seconds,
        hint="it is tried again by itself; see whether the database runs and can be reached",
    )
