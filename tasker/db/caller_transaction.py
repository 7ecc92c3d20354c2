"""Access to a transaction of the caller: SQLAlchemy's (connection or session, sync or async) or the driver's.

SQLAlchemy is imported only if the caller passes something other than a connection of the driver.
"""

from __future__ import annotations

import json
import logging
import re
import sys
from base64 import b64decode
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeVar
from weakref import WeakKeyDictionary

import psycopg
from psycopg.rows import tuple_row

from tasker.db.connection import DataRefused, is_of_data
from tasker.errors import DatabaseError, DatabaseUnavailable, LockTimeout, SchemaOutdated, UsageError
from tasker.settings.addresses import DEFAULT_BACKEND

if TYPE_CHECKING:
    import sqlalchemy

T = TypeVar("T")
Then = Callable[[], None]

ACCEPTED = "a SQLAlchemy Connection, Session, AsyncConnection or AsyncSession, or a psycopg Connection"
LOCK_NOT_AVAILABLE, NO_TRANSACTION = "55P03", "25P01"
READ_COMMITTED = "read committed"
SETTINGS = """select pg_catalog.current_setting('lock_timeout') || ' '
  || pg_catalog.current_setting('transaction_isolation')"""
NOT_THERE = ("3F000", "42883", "42P01")
_log = logging.getLogger("tasker.submission")


class CallerTransaction(Protocol):
    """A transaction of the caller. Tasker never commits it or rolls it back."""

    def value(self, statement: str, *arguments: str) -> Any:
        """Return the first value of the first row, or None without a row. `{}` in the statement marks an argument."""
        ...

    def savepoint(self) -> AbstractContextManager[object]:
        """Return a savepoint: its block is rolled back if it raises, and the transaction continues."""
        ...

    def is_lost(self, error: Exception) -> bool:
        """Return True if the connection has ended, given the driver's `error`."""
        ...

    def after_commit(self, then: Then) -> None:
        """Call `then` just before the transaction commits, and never after a rollback."""
        ...


class DriverTransaction:
    """Caller's transaction on a synchronous psycopg connection."""

    def __init__(self, connection: psycopg.Connection[Any]) -> None:
        self._connection = connection

    def value(self, statement: str, *arguments: str) -> Any:
        row = self._execute(statement.replace("{}", "%s").encode(), arguments).fetchone()
        return row[0] if row else None

    def _execute(self, statement: bytes, arguments: Sequence[str] = ()) -> psycopg.Cursor[tuple[Any, ...]]:
        """Execute the statement without the connection's own factories, which may change placeholders and rows."""
        return psycopg.Cursor(self._connection, row_factory=tuple_row).execute(statement, arguments)

    def savepoint(self) -> AbstractContextManager[object]:
        """Return a savepoint; see `CallerTransaction.savepoint`. Raises `UsageError` outside of a transaction."""
        if self._connection.info.transaction_status == psycopg.pq.TransactionStatus.IDLE:
            if self._connection.autocommit:
                raise _no_transaction()
            # begins the caller's transaction, which the block below would otherwise begin and commit
            self._execute(b"select")
        return self._connection.transaction()

    def is_lost(self, error: Exception) -> bool:
        return self._connection.closed

    def after_commit(self, then: Then) -> None:
        """Raise `UsageError`: a psycopg connection has no hook for its commit."""
        raise UsageError(
            "this messaging backend sends after the commit, and a psycopg connection does not report its commits",
            hint="give a SQLAlchemy connection or session, or use a backend that sends in the transaction, such as "
            f"{DEFAULT_BACKEND}",
        )


class SqlalchemyTransaction:
    """Caller's transaction on a synchronous SQLAlchemy connection, with any PostgreSQL driver."""

    def __init__(self, connection: sqlalchemy.Connection) -> None:
        self._connection = connection

    def value(self, statement: str, *arguments: str) -> Any:
        from sqlalchemy import text

        names = [f"argument_{number}" for number in range(len(arguments))]
        query = text(statement.format(*(f":{name}" for name in names)))
        return self._connection.execute(query, dict(zip(names, arguments, strict=True))).scalar()

    def savepoint(self) -> AbstractContextManager[object]:
        return self._connection.begin_nested()

    def is_lost(self, error: Exception) -> bool:
        return bool(getattr(error, "connection_invalidated", False))

    def after_commit(self, then: Then) -> None:
        _CommitHook.of(self._connection).then.append(then)


class _CommitHook:
    """Callbacks that run at the commit of a SQLAlchemy connection, with one event listener per connection."""

    _hooks: ClassVar[WeakKeyDictionary[sqlalchemy.Connection, _CommitHook]] = WeakKeyDictionary()

    def __init__(self) -> None:
        self.then: list[Then] = []

    @classmethod
    def of(cls, connection: sqlalchemy.Connection) -> _CommitHook:
        hook = cls._hooks.get(connection)
        if hook is None:
            from sqlalchemy import event

            hook = cls._hooks[connection] = cls()
            event.listen(connection, "commit", hook.committing)
            event.listen(connection, "rollback", hook.rolled_back)
        return hook

    def committing(self, connection: sqlalchemy.Connection) -> None:
        then, self.then = self.then, []
        for call in then:
            try:
                call()
            except Exception:  # SQLAlchemy would treat an error as a failed commit and leave the transaction open
                _log.exception("after_commit_failed")

    def rolled_back(self, connection: sqlalchemy.Connection) -> None:
        self.then.clear()


def caller_transaction(target: object) -> CallerTransaction:
    """Return the transaction of a synchronous connection or session. Raises `UsageError` for any other object."""
    if isinstance(target, psycopg.Connection):
        return DriverTransaction(target)
    import sqlalchemy
    from sqlalchemy.orm import Session, scoped_session

    if isinstance(target, scoped_session):
        target = target()
    if isinstance(target, Session):
        target = target.connection()
    if not isinstance(target, sqlalchemy.Connection):
        raise UsageError(f"cannot submit in a {type(target).__name__}", hint=f"expected {ACCEPTED}")
    if target.dialect.name != "postgresql":
        raise UsageError(
            f"the transaction belongs to a {target.dialect.name} database",
            hint="tasks live in PostgreSQL: submit in a transaction of the database that holds the schema tasker",
        )
    return SqlalchemyTransaction(target)


async def in_caller_transaction(target: Any, use: Callable[[CallerTransaction], T]) -> T:
    """Call `use` with the transaction of a sync or async connection or session and return its result.

    Raises `UsageError` for any other object.
    """
    asynchronous = sys.modules.get("sqlalchemy.ext.asyncio")  # already imported if the caller has one of its objects
    if asynchronous is not None:
        if isinstance(target, asynchronous.async_scoped_session):
            target = target()
        if isinstance(target, (asynchronous.AsyncConnection, asynchronous.AsyncSession)):
            answer: T = await target.run_sync(lambda inner: use(caller_transaction(inner)))
            return answer
    return use(caller_transaction(target))


@contextmanager
def guarded(transaction: CallerTransaction, lock_timeout: float) -> Iterator[None]:
    """Open a savepoint in which no statement waits longer than `lock_timeout` seconds for a lock (rule 23).

    Driver errors are raised as Tasker's errors, and after any error the caller can continue the transaction. Raises
    `UsageError` if the transaction is not READ COMMITTED.
    """
    from_driver = driver_errors()
    try:
        with transaction.savepoint():
            before, _, isolation = transaction.value(SETTINGS).partition(" ")
            if isolation != READ_COMMITTED:
                raise _other_isolation(isolation)
            _limit_locks(transaction, f"{max(1, round(lock_timeout * 1000))}ms")
            yield
            _limit_locks(transaction, before)
    except from_driver as error:
        raise _translated(error, transaction.is_lost(error), lock_timeout) from error


def call_in(transaction: CallerTransaction, expression: str, args: str) -> dict[str, Any]:
    """Call a function that returns jsonb, e.g. `tasker.submit_v1(cast({} as jsonb))`. `args` is JSON text."""
    result: dict[str, Any] = portable(transaction.value(f"select {as_portable(expression)}", _ascii(args)))
    return result


def as_portable(expression: str) -> str:
    """Return SQL that encodes a jsonb value as text valid in every `client_encoding`; `portable` decodes it."""
    return f"pg_catalog.encode(pg_catalog.convert_to(cast({expression} as text), 'UTF8'), 'base64')"


def portable(text: str) -> Any:
    """Return the JSON value encoded by the SQL of `as_portable`."""
    return json.loads(b64decode(text))


def _ascii(text: str) -> str:
    """Return the same JSON in ASCII, for a client encoding that lacks some of its characters."""
    return text if text.isascii() else re.sub(r"[^\x00-\x7f]", lambda match: json.dumps(match[0])[1:-1], text)


def _limit_locks(transaction: CallerTransaction, value: str) -> None:
    transaction.value("select pg_catalog.set_config('lock_timeout', {}, true)", value)


def driver_errors() -> tuple[type[Exception], ...]:
    """Return the classes of errors that the driver and, if it is in use, SQLAlchemy raise."""
    if "sqlalchemy" not in sys.modules:
        return (psycopg.Error,)
    from sqlalchemy.exc import DBAPIError

    return (psycopg.Error, DBAPIError)


def _translated(error: Exception, is_lost: bool, lock_timeout: float) -> DatabaseError | UsageError:
    cause = getattr(error, "orig", None) or error
    state = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None) or ""
    if state == LOCK_NOT_AVAILABLE:
        return LockTimeout(
            f"another transaction held what this submission needs for longer than {lock_timeout:g} seconds",
            hint="most likely it submits a task of the same identity: try again, or go on without",
        )
    if state == NO_TRANSACTION:
        return _no_transaction()
    if state in NOT_THERE:
        return SchemaOutdated(
            f"the database of this transaction lacks a part of the schema tasker: {cause}",
            hint="run: tasker db upgrade --database-url URL",
        )
    if is_lost:
        return DatabaseUnavailable(f"the connection of this transaction was lost: {cause}")
    kind = DataRefused if is_of_data(state) else DatabaseError
    return kind(f"the database answered {state or 'an error'}: {cause}", metadata={"sqlstate": state})


def _other_isolation(isolation: str) -> UsageError:
    return UsageError(
        f"tasker needs READ COMMITTED, this transaction is {isolation.upper()}",
        hint="begin one that is READ COMMITTED, PostgreSQL's default: whether a task exists already is to be seen also"
        " if another call commits it meanwhile",
    )


def _no_transaction() -> UsageError:
    return UsageError(
        "the connection is in autocommit mode: there is no transaction to take part in",
        hint="begin one first; or use App.submit, which has one of its own",
    )
