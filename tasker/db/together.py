"""Several statements as one transaction, on a connection that is lent for as long as it takes.

Whoever is in the middle of it asks the same object as ever: what the task of the event loop that began the transaction
asks is part of it, what others ask at the same time is not.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from typing import TypeVar

from tasker.db.connection import Execute, Statements
from tasker.db.session import Params, Rows
from tasker.errors import DatabaseError

T = TypeVar("T")
Then = Callable[[], Awaitable[None]]


class Transaction:
    """One transaction of `owner`, over `execute`. Behind the first statement that fails nothing is executed any more:
    the server would answer a commit as if all were well."""

    def __init__(self, owner: SharedTransactions, execute: Execute) -> None:
        self.owner, self.task = owner, asyncio.current_task()
        self._execute = execute
        self._failure: BaseException | None = None
        self._then: list[Then] = []

    async def execute(self, statement: str, params: Params = None) -> Rows:
        """As `Statements.execute`. Raises `DatabaseError` behind a failure, whatever became of that."""
        self._require_sound()
        try:
            return await self._execute(statement, params)
        except BaseException as error:
            self._failure = error
            raise

    def after_commit(self, then: Then) -> None:
        """Run `then` once it is committed and its connection is given back; never, where it is not."""
        self._then.append(then)

    async def around(self, use: Callable[[], Awaitable[T]]) -> T:
        """What `use` returns, committed. What it raises leaves the transaction open, for whoever lent the connection.

        Each statement sees what is committed by then, as it would in a transaction of its own.
        """
        before = _current.set(self)
        try:
            await self.execute("begin isolation level read committed")
            answer = await use()
            await self.execute("commit")
        finally:
            _current.reset(before)
        return answer

    async def told(self) -> None:
        """Run what waits for the commit, in its order."""
        for then in self._then:
            await then()

    def _require_sound(self) -> None:
        if self._failure is not None:
            raise DatabaseError("an earlier statement of this transaction has failed") from self._failure


class SharedTransactions(Statements):
    """Who can lend a connection for a whole transaction."""

    @property
    def transaction(self) -> Transaction | None:
        """The one that is open here and now: begun by `together`, of this object, in this task of the event loop."""
        found = _current.get()
        mine = found is not None and found.owner is self and found.task is asyncio.current_task()
        return found if mine else None

    @abstractmethod
    async def together(self, use: Callable[[], Awaitable[T]]) -> T:
        """What `use` returns; the statements that it asks of this object are one transaction, or part of the one that
        is open. Raises as they do: nothing of it is done then, unless the connection was lost during the commit."""


_current: ContextVar[Transaction | None] = ContextVar("transaction", default=None)
