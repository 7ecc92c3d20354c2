"""The transaction of a handler, whose commit also completes its step.

A source opens connections: a psycopg pool, a SQLAlchemy engine or session factory, or any function that returns a
connection or session. The statements are written once, as generators that yield a statement and get its value, and run
on synchronous and asynchronous handles.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

import psycopg
from psycopg.rows import tuple_row

from tasker.db.caller_transaction import (
    LOCK_NOT_AVAILABLE,
    NOT_THERE,
    READ_COMMITTED,
    as_portable,
    caller_transaction,
    driver_errors,
    in_caller_transaction,
    portable,
)
from tasker.db.connection import DataRefused, is_of_data
from tasker.db.database import libpq_url
from tasker.errors import ConfigurationError, DatabaseError, DatabaseUnavailable, LockTimeout, PermanentError

if TYPE_CHECKING:
    from tasker.db.django_transaction import DjangoTransaction

T = TypeVar("T")
Statements: TypeAlias = Generator[tuple[str, tuple[str, ...]], Any, T]

IDLE_SECONDS = 10
"""Time for which a frozen process may hold the locks of the task between the result's write and the commit."""
LOCK_SECONDS = 10
"""Longest wait for the lock of the task or the step."""
INSUFFICIENT_PRIVILEGE = "42501"
OF_BLOCKING = "a psycopg Connection, or a SQLAlchemy Session or Connection"
OF_ASYNC = "a psycopg AsyncConnection, or a SQLAlchemy AsyncSession or AsyncConnection"

BEGIN = """select pg_catalog.current_setting('transaction_isolation') || ',' || coalesce((
  select cast(s.claim_token as text) from tasker.workflow_steps s where s.workflow_step_uuid = cast({} as uuid)), '')
  || pg_catalog.left(pg_catalog.set_config('tasker.claim', {}, true), 0)"""
MARK = "select pg_catalog.current_setting('tasker.claim', true)"
PREPARE = """select pg_catalog.current_setting('tasker.claim', true) || pg_catalog.left(
  pg_catalog.set_config('idle_in_transaction_session_timeout', {}, true)
  || pg_catalog.set_config('lock_timeout', {}, true), 0)"""


class TransactionEnded(PermanentError):
    """The handler has ended its transaction itself."""

    error_type = "transaction_ended"


class CommitUnknown(Exception):
    """The connection was lost during the commit: only the row of the step tells what became of it."""


def begin(step: str, token: int) -> Statements[None]:
    """Begin the transaction of a claimed step and mark it. Raises `ConfigurationError` if it cannot complete the step.

    The mark ends with the transaction, so that `complete` notices a handler that has committed by itself.
    """
    isolation, _, found = (yield BEGIN, (step, f"{step} {token}")).partition(",")
    if isolation != READ_COMMITTED:
        raise ConfigurationError(
            f"expected a READ COMMITTED transaction, got {isolation.upper()}",
            hint="make the connections of this resource with the default isolation level of PostgreSQL",
        )
    if not found:
        raise elsewhere("it does not have the step")
    if (yield MARK, ()) != f"{step} {token}":
        raise ConfigurationError(
            "expected a transaction, got a connection in autocommit mode",
            hint="make the connections of this resource without AUTOCOMMIT",
        )


def complete(step: str, token: int, expression: str, args: str) -> Statements[dict[str, Any]]:
    """Write the result of the step with an engine function and return its answer; the caller commits or rolls back."""
    mark = yield PREPARE, (f"{IDLE_SECONDS}s", f"{LOCK_SECONDS}s")
    if mark != f"{step} {token}":
        raise TransactionEnded(
            "the handler has committed or rolled back its transaction",
            hint="leave both to Tasker; use a savepoint (`begin_nested()`, `connection.transaction()`) to undo a part",
        )
    answer: dict[str, Any] = portable((yield f"select {as_portable(expression)}", (args,)))
    return answer


def elsewhere(why: str) -> ConfigurationError:
    """Return the error of a transaction that is not in Tasker's database."""
    return ConfigurationError(
        f"the transaction is not in the database of Tasker: {why}",
        hint="give the resource the URL of the database that has the schema tasker",
    )


class HandlerTransaction:
    """The open transaction of a blocking handler; `handle` is its connection or session."""

    def __init__(self, source: Any) -> None:
        self._give_back: Callable[[Any], object] = type(self)._closed
        if hasattr(source, "getconn"):
            self.handle, self._give_back = source.getconn(), source.putconn
        else:
            self.handle = source.connect() if hasattr(source, "connect") else _called(source)
        if not _is_one_of(self.handle, psycopg.Connection, "Connection", "Session"):
            raise _unusable(self.handle, OF_BLOCKING)
        self._autocommit = isinstance(self.handle, psycopg.Connection) and self.handle.autocommit
        if self._autocommit:
            self.handle.autocommit = False

    @staticmethod
    def _closed(handle: Any) -> None:
        handle.close()

    def run(self, statements: Statements[T]) -> T:
        """Execute the statements and return their result. Raises Tasker's errors."""
        if hasattr(self.handle, "flush"):
            self.handle.flush()
        transaction = caller_transaction(self.handle)
        try:
            return run(transaction, statements)
        except driver_errors() as error:
            raise translated(error, transaction.is_lost(error)) from error

    def commit(self) -> None:
        """Commit. Raises `CommitUnknown` if the connection was lost meanwhile, and the driver's error otherwise."""
        try:
            self.handle.commit()
        except driver_errors() as error:
            if is_lost(self.handle, error):
                raise CommitUnknown from error
            raise

    def close(self) -> None:
        """Roll back what is not committed and give the connection back as it was."""
        with suppress(Exception):
            self.handle.rollback()
            if self._autocommit:
                self.handle.autocommit = True
        with suppress(Exception):
            self._give_back(self.handle)


class AsyncHandlerTransaction:
    """The open transaction of an async handler; `handle` is its connection or session."""

    def __init__(self, handle: Any, give_back: Callable[[Any], Any]) -> None:
        self.handle, self._give_back, self._autocommit = handle, give_back, False

    @classmethod
    async def open(cls, source: Any) -> AsyncHandlerTransaction:
        """Open a transaction of the source. Raises `ConfigurationError` for one that is not asynchronous."""
        if is_of_django(source):
            raise _unusable(source, OF_ASYNC)
        if hasattr(source, "getconn"):
            handle, give_back = source.getconn(), source.putconn
        else:
            handle = source.connect() if hasattr(source, "connect") else _called(source)
            give_back = cls._closed
        if inspect.isawaitable(handle):
            handle = await handle
        if not _is_one_of(handle, psycopg.AsyncConnection, "AsyncConnection", "AsyncSession"):
            raise _unusable(handle, OF_ASYNC)
        opened = cls(handle, give_back)
        if isinstance(handle, psycopg.AsyncConnection) and handle.autocommit:
            opened._autocommit = True
            await handle.set_autocommit(False)
        return opened

    @staticmethod
    async def _closed(handle: Any) -> None:
        await handle.close()

    async def run(self, statements: Statements[T]) -> T:
        """Execute the statements and return their result. Raises Tasker's errors."""
        if hasattr(self.handle, "flush"):
            await self.handle.flush()
        try:
            if isinstance(self.handle, psycopg.AsyncConnection):
                return await _run_async(self.handle, statements)
            return await in_caller_transaction(self.handle, partial(run, statements=statements))
        except driver_errors() as error:
            raise translated(error, is_lost(self.handle, error)) from error

    async def commit(self) -> None:
        """Commit; see `HandlerTransaction.commit`."""
        try:
            await self.handle.commit()
        except driver_errors() as error:
            if is_lost(self.handle, error):
                raise CommitUnknown from error
            raise

    async def close(self) -> None:
        """Roll back what is not committed and give the connection back as it was, also when it is cancelled."""
        try:
            with suppress(Exception):
                await self.handle.rollback()
                if self._autocommit:
                    await self.handle.set_autocommit(True)
        finally:
            with suppress(Exception):
                await self._give_back(self.handle)


def open_transaction(source: Any) -> HandlerTransaction | DjangoTransaction:
    """Open a transaction of the source for a blocking handler. Raises `ConfigurationError` for an unusable source."""
    if not is_of_django(source):
        return HandlerTransaction(source)
    from tasker.db.django_transaction import DjangoTransaction  # for programs with Django only

    return DjangoTransaction(source)


def is_of_django(source: Any) -> bool:
    """Return True for `django.db.transaction.atomic(...)`."""
    return type(source).__name__ == "Atomic" and type(source).__module__ == "django.db.transaction"


def own_source(url: str, *, asynchronous: bool) -> Callable[[], Any]:
    """Return a source of psycopg connections to the database of Tasker."""
    connect: Callable[..., Any] = psycopg.AsyncConnection.connect if asynchronous else psycopg.connect
    return partial(connect, libpq_url(url), prepare_threshold=None)


class ReadsValues(Protocol):
    """A transaction on which a statement can be executed."""

    def value(self, statement: str, *arguments: str) -> Any:
        """Return the first value of the first row; `{}` in the statement marks an argument."""
        ...


def run(transaction: ReadsValues, statements: Statements[T]) -> T:
    """Execute the statements one after the other."""
    try:
        statement, arguments = next(statements)
        while True:
            statement, arguments = statements.send(transaction.value(statement, *arguments))
    except StopIteration as end:
        result: T = end.value
        return result


async def _run_async(connection: psycopg.AsyncConnection[Any], statements: Statements[T]) -> T:
    try:
        statement, arguments = next(statements)
        while True:
            cursor = psycopg.AsyncCursor(connection, row_factory=tuple_row)
            await cursor.execute(statement.replace("{}", "%s").encode(), arguments)
            row = await cursor.fetchone()
            statement, arguments = statements.send(row[0] if row else None)
    except StopIteration as end:
        result: T = end.value
        return result


def is_lost(handle: Any, error: Exception) -> bool:
    """Return True if the connection has ended with this error."""
    if isinstance(handle, (psycopg.Connection, psycopg.AsyncConnection)):
        return handle.closed
    return bool(getattr(error, "connection_invalidated", False))


def translated(error: Exception, lost: bool) -> Exception:
    """Return Tasker's error for an error of the driver in a statement of Tasker."""
    cause = getattr(error, "orig", None) or error
    state = getattr(cause, "sqlstate", None) or getattr(cause, "pgcode", None) or ""
    if state == LOCK_NOT_AVAILABLE:
        return LockTimeout(f"another transaction held the task for longer than {LOCK_SECONDS} seconds")
    if state in NOT_THERE:
        return elsewhere(str(cause))
    if state == INSUFFICIENT_PRIVILEGE:
        return ConfigurationError(
            f"the role of the transaction may not complete a step: {cause}",
            hint="grant it the rights of the role of workers",
        )
    if lost:
        return DatabaseUnavailable(f"the connection of the transaction was lost: {cause}")
    kind = DataRefused if is_of_data(state) else DatabaseError
    return kind(f"the database answered {state or 'an error'}: {cause}", metadata={"sqlstate": state})


def _called(source: Any) -> Any:
    if not callable(source):
        raise _unusable(source, "an engine, a session factory, a pool, or a function that returns a connection")
    return source()


def _is_one_of(handle: Any, driver: type[Any], *of_sqlalchemy: str) -> bool:
    if isinstance(handle, driver):
        return True
    return any(
        base.__module__.startswith("sqlalchemy.") and base.__name__ in of_sqlalchemy for base in type(handle).__mro__
    )


def _unusable(found: Any, expected: str) -> ConfigurationError:
    with suppress(Exception):
        closing = found.close()
        if inspect.iscoroutine(closing):
            closing.close()
    return ConfigurationError(
        f"the resource of a transaction gives a {type(found).__name__}, expected {expected}",
        hint="an `async def` handler needs an asynchronous one, any other handler a synchronous one",
    )
