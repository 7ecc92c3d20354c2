"""The transaction of a handler on a connection of Django: the models of a blocking handler take part in it."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, TypeVar

from tasker.db.handler_transaction import CommitUnknown, Statements, elsewhere, run, translated
from tasker.errors import DatabaseError

T = TypeVar("T")


class DjangoTransaction:
    """An `atomic` block around the handler; `handle` is Django's connection.

    Connections of Django belong to threads, so all methods must be called in the one that runs the handler.
    """

    def __init__(self, atomic: Any) -> None:
        from django.db import Error, transaction

        self._atomic, self._errors, self._set_rollback = atomic, Error, transaction.set_rollback
        self.handle = transaction.get_connection(atomic.using)
        if self.handle.vendor != "postgresql":
            raise elsewhere(f"it belongs to a {self.handle.vendor} database")
        self.handle.close_if_unusable_or_obsolete()
        atomic.__enter__()
        self._is_open = True

    def value(self, statement: str, *arguments: str) -> Any:
        """Return the first value of the first row, as `CallerTransaction.value`."""
        with self.handle.cursor() as cursor:
            cursor.execute(statement.replace("{}", "%s"), arguments)
            row = cursor.fetchone()
        return row[0] if row else None

    def run(self, statements: Statements[T]) -> T:
        """Execute the statements and return their result. Raises Tasker's errors."""
        try:
            return run(self, statements)
        except self._errors as error:
            if error.__cause__ is None:  # of Django itself: the handler has hidden an error in its block
                raise DatabaseError(f"the transaction cannot be completed: {error}") from error
            raise translated(error.__cause__, self._is_lost()) from error

    def commit(self) -> None:
        """Commit. Raises `CommitUnknown` if the connection was lost meanwhile, and Django's error otherwise."""
        self._is_open = False
        try:
            self._atomic.__exit__(None, None, None)
        except self._errors as error:
            if self._is_lost():
                raise CommitUnknown from error
            raise

    def close(self) -> None:
        """Roll back what is not committed; the connection stays with its thread, as in a request."""
        with suppress(Exception):
            if self._is_open:
                self._set_rollback(True, self._atomic.using)
                self._atomic.__exit__(None, None, None)
        with suppress(Exception):
            self.handle.close_if_unusable_or_obsolete()

    def _is_lost(self) -> bool:
        return self.handle.connection is None or bool(self.handle.connection.closed)
