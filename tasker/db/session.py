"""Statements on one open connection, bypassing the driver's cursors to save two thirds of the CPU per answer.

The driver still opens the connection, converts values in both directions, and cancels statements.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Any

import psycopg
from psycopg.adapt import PyFormat, Transformer
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult

Params = Sequence[Any] | Mapping[str, Any] | None
Rows = list[tuple[Any, ...]]
MOST_PREPARED = 100
"""Number of statements that a session keeps prepared; further ones are planned each time."""
CANCEL_SECONDS = 5.0
"""Time the server has to cancel a statement before the connection is closed."""
ENDS = ("FATAL", "PANIC")
"""Severities after which the server closes the connection."""
_PLACEHOLDER = re.compile(r"%(?:%|s|\((?P<name>\w+)\)s)")


class Session:
    """Executor of one statement at a time on `driver`, in the event loop that created it. `prepare` prepares each once.

    The socket is watched from the first statement until the connection ends, so an end is also noticed while idle.
    Starting and stopping the watch for each answer would cost more than the answer.
    """

    def __init__(self, driver: psycopg.AsyncConnection[Any], *, prepare: bool) -> None:
        self._driver, self._prepare = driver, prepare
        self._server, self._values = driver.pgconn, Transformer(driver)
        driver.add_notice_handler(self._noticed)
        self._loop = asyncio.get_running_loop()
        self.ended: psycopg.Error | None = None
        """Reason why the server ended the session while it was idle; None if it has not."""
        self._socket = -1
        """Watched file descriptor, or -1."""
        self._names: dict[tuple[bytes, Sequence[int]], bytes] = {}
        self._tried = 0
        """Number of statements it began to prepare; one without an answer may exist on the server too."""
        self._answer: asyncio.Future[PGresult | psycopg.Error | None] | None = None
        self._result: PGresult | None = None

    async def execute(self, statement: str, params: Params = None) -> Rows:
        """Run one statement and return its rows. Raises `psycopg.Error`; a cancellation also cancels the statement."""
        if self.ended is not None:
            raise self.ended
        text, arguments = _numbered(statement, params)
        values = self._values.dump_sequence(arguments, [PyFormat.AUTO] * len(arguments))
        types, formats = self._values.types or (), self._values.formats
        if name := await self._prepared(text, types):
            result = await self._ask(lambda: self._server.send_query_prepared(name, values, formats))
        else:
            result = await self._ask(lambda: self._server.send_query_params(text, values, types, formats))
        if result.status != ExecStatus.TUPLES_OK:
            return []
        self._values.set_pgresult(result)
        return self._values.load_rows(0, result.ntuples, tuple)

    def close(self) -> None:
        """Stop watching the socket and fail a pending answer; call it before the connection is closed."""
        if self._socket >= 0:
            for remove in (self._loop.remove_reader, self._loop.remove_writer):
                with suppress(OSError):  # the driver has closed the socket: the server died during a send
                    remove(self._socket)
            self._socket = -1
        self._settle(psycopg.OperationalError("the connection was closed before the answer came"))

    async def _prepared(self, text: bytes, types: Sequence[int]) -> bytes | None:
        """Return the name of the prepared statement, or None if it is to be planned each time."""
        key = (text, types)
        if (name := self._names.get(key)) or not self._prepare or self._tried >= MOST_PREPARED:
            return name
        made = b"tasker_%d" % self._tried
        self._tried += 1
        await self._ask(lambda: self._server.send_prepare(made, text, types))
        self._names[key] = made
        return made

    async def _ask(self, send: Callable[[], None]) -> PGresult:
        self._answer = self._loop.create_future()
        try:
            send()
            self._watch()
            answer = await self._answer
        except asyncio.CancelledError:
            await self._cancel()
            raise
        except psycopg.Error:
            self.close()  # the driver may have closed the socket
            raise
        except OSError as error:  # the driver has closed the socket
            self.close()
            raise psycopg.OperationalError(f"the connection was closed during a send: {error}") from error
        finally:
            self._answer = None
        if isinstance(answer, psycopg.Error):
            raise answer
        if answer is None or answer.status not in (ExecStatus.TUPLES_OK, ExecStatus.COMMAND_OK):
            raise _refused(answer, self._driver)
        return answer

    def _watch(self) -> None:
        if self._socket < 0:
            self._socket = self._server.socket
            self._loop.add_reader(self._socket, self._readable)
        if self._server.flush():
            self._loop.add_writer(self._socket, self._writable)

    def _readable(self) -> None:
        if self._answer is None:
            self._hear()
            return
        try:
            self._server.consume_input()
            while not self._server.is_busy():
                result = self._server.get_result()
                if result is None:
                    self._settle()
                    return
                self._result = result
        except psycopg.Error as error:
            self._lost(error)

    def _hear(self) -> None:
        """Read what the server sends without a statement: a notice, a changed setting, or the end of the session."""
        try:
            self._server.consume_input()
            self._server.is_busy()  # makes the driver read the notices
        except psycopg.Error as error:
            self.ended = self.ended or error
        if self.ended is not None:
            self.close()

    def _noticed(self, notice: psycopg.errors.Diagnostic) -> None:
        """Record a fatal error: without a running statement it arrives as a notice."""
        if notice.severity_nonlocalized in ENDS:
            self.ended = psycopg.OperationalError(str(notice.message_primary))

    def _writable(self) -> None:
        try:
            if not self._server.flush():
                self._loop.remove_writer(self._socket)
        except psycopg.Error as error:
            self._lost(error)
        except OSError as error:
            self._lost(psycopg.OperationalError(f"the connection was closed during a send: {error}"))

    def _lost(self, error: psycopg.Error) -> None:
        """Handle a lost connection; the server may already have sent the reason."""
        reported = self._result is not None and self._result.status == ExecStatus.FATAL_ERROR
        self._settle(None if reported else error)
        self.close()

    def _settle(self, error: psycopg.Error | None = None) -> None:
        result, self._result = self._result, None
        if self._answer is not None and not self._answer.done():
            self._answer.set_result(error or result)

    async def _cancel(self) -> None:
        """Cancel the statement as the driver does, so that it keeps no locks; close the connection if that fails."""
        try:
            if self._server.transaction_status == TransactionStatus.ACTIVE:
                self._answer = self._loop.create_future()
                async with asyncio.timeout(CANCEL_SECONDS):
                    await self._driver.cancel_safe(timeout=CANCEL_SECONDS)
                    await self._answer
        except BaseException as error:
            self.close()
            self._server.finish()
            if not isinstance(error, (psycopg.Error, TimeoutError)):
                raise


def _refused(result: PGresult | None, driver: psycopg.AsyncConnection[Any]) -> psycopg.Error:
    if result is None:
        return psycopg.OperationalError("the server has answered nothing")
    return psycopg.errors.error_from_result(result, driver.info.encoding)


def _numbered(statement: str, params: Params) -> tuple[bytes, Sequence[Any]]:
    """Return the statement with numbered placeholders, and the values in that order."""
    if params is None:
        return statement.encode(), ()
    text, names = _with_numbers(statement)
    return text, [params[name] for name in names] if isinstance(params, Mapping) else params


@lru_cache(512)
def _with_numbers(statement: str) -> tuple[bytes, Sequence[str]]:
    """Replace each `%s`, or each distinct `%(name)s`, with `$1`, `$2`, ..."""
    names: list[str] = []

    def number(match: re.Match[str]) -> str:
        if match[0] == "%%":
            return "%"
        name = match["name"] or str(len(names))
        if name not in names:
            names.append(name)
        return f"${names.index(name) + 1}"

    return _PLACEHOLDER.sub(number, statement).encode(), names
