"""Several statements in one transaction, on a connection that is lent for its duration.

Code inside the transaction uses the same object as outside: statements of the asyncio task that began the transaction
belong to it, and statements of other tasks at the same time do not.
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
    """Transaction of `owner`, run through `execute`.

    After the first failed statement nothing more is executed: the server would answer a commit as if it had succeeded.
    """

    def __init__(self, owner: SharedTransactions, execute: Execute) -> None:
        self.owner, self.task = owner, asyncio.current_task()
        self._execute = execute
        self._failure: BaseException | None = None
        self._then: list[Then] = []

    async def execute(self, statement: str, params: Params = None) -> Rows:
        """Run one statement; see `Statements.execute`. Raises `DatabaseError` after an earlier failure."""
        self._require_sound()
        try:
            return await self._execute(statement, params)
        except BaseException as error:
            self._failure = error
            raise

    def after_commit(self, then: Then) -> None:
        """Run `then` after the commit, when the connection has been returned; never without a commit."""
        self._then.append(then)

    async def around(self, use: Callable[[], Awaitable[T]]) -> T:
        """Call `use`, commit, and return its result. After an error the transaction stays open for its lender.

        Each statement sees everything committed by then, as it would in its own transaction.
        """
        before = _current.set(self)
        try:
            await self.execute("begin isolation level read committed")
            answer = await use()
            await self.execute("commit")
        finally:
            _current.reset(before)
        return answer

    async def run_callbacks(self) -> None:
        """Run the callbacks registered by `after_commit`, in order."""
        for then in self._then:
            await then()

    def _require_sound(self) -> None:
        if self._failure is not None:
            raise DatabaseError("an earlier statement of this transaction has failed") from self._failure


class SharedTransactions(Statements):
    """`Statements` that can lend a connection for a whole transaction."""

    @property
    def transaction(self) -> Transaction | None:
        """Open transaction begun by `together` of this object in the current asyncio task, or None."""
        current = _current.get()
        mine = current is not None and current.owner is self and current.task is asyncio.current_task()
        return current if mine else None

    @abstractmethod
    async def together(self, use: Callable[[], Awaitable[T]]) -> T:
        """Call `use` and return its result; its statements on this object form one transaction or join the open one.

        Raises the errors of the statements: nothing is committed then, unless the connection was lost during the
        commit.
        """


_current: ContextVar[Transaction | None] = ContextVar("transaction", default=None)
