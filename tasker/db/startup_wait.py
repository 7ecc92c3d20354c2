"""Waiting at process start for a server that is not reachable yet, or becomes unreachable again meanwhile."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from tasker.db.connection import Statements
from tasker.db.database import describe_url
from tasker.db.session import Params, Rows
from tasker.errors import BackendUnavailable, DatabaseUnavailable, TaskerError

if TYPE_CHECKING:
    from stamina.instrumentation import RetryDetails

T = TypeVar("T")
LONGEST_PAUSE_SECONDS = 5.0
_log = logging.getLogger("tasker.process")


def with_database(url: str, seconds: float, call: Callable[[], T]) -> T:
    """Return the result of `call`, repeating it while the database is unreachable or the connection was lost.

    Retries with growing pauses for `seconds`; logs one line when waiting begins and one when the server answers. Raises
    `DatabaseUnavailable` after that time, or at once if waiting cannot help (a wrong password, a database that does not
    exist).
    """
    try:
        return call()
    except DatabaseUnavailable as error:
        if not (seconds and _may_come(error)):
            raise
        first = error
    import stamina

    with _waiting(describe_url(url), seconds, first, "start the database, or check the URL"):
        for attempt in stamina.retry_context(
            on=_may_come, attempts=None, timeout=seconds, wait_max=LONGEST_PAUSE_SECONDS, wait_jitter=0.5
        ):
            with attempt:
                result = call()
    return result


async def with_servers(where: str, seconds: float, hint: str, call: Callable[[], Awaitable[T]]) -> T:
    """Await `call` as `with_database` does for a function; `BackendUnavailable` of a broker is retried too."""
    try:
        return await call()
    except (DatabaseUnavailable, BackendUnavailable) as error:
        if not (seconds and _may_come(error)):
            raise
        first = error
    import stamina

    with _waiting(where, seconds, first, hint):
        async for attempt in stamina.retry_context(
            on=_may_come, attempts=None, timeout=seconds, wait_max=LONGEST_PAUSE_SECONDS, wait_jitter=0.5
        ):
            with attempt:
                result = await call()
    return result


class StartupWait(Statements):
    """Wrapper of `Statements` that waits up to `seconds` per statement for an unreachable database.

    A statement may run twice, so use it only for statements that are safe to repeat.
    """

    def __init__(self, statements: Statements, url: str, seconds: float) -> None:
        self._statements, self._url, self._seconds = statements, url, seconds

    async def execute(self, statement: str, params: Params = None) -> Rows:
        return await with_servers(
            describe_url(self._url),
            self._seconds,
            "start the database, or check the URL",
            lambda: self._statements.execute(statement, params),
        )

    async def close(self) -> None:
        await self._statements.close()


def _may_come(error: Exception) -> bool:
    return isinstance(error, (DatabaseUnavailable, BackendUnavailable)) and error.retryable


@contextmanager
def _waiting(where: str, seconds: float, first: TaskerError, hint: str) -> Iterator[None]:
    """Log one line at the beginning and one at the end; raise the error of the last attempt if waiting fails."""
    _log.warning("waiting for %s, at most %g seconds: %s", where, seconds, " ".join(first.message.split()))
    try:
        with _attempts_at_debug(where):
            yield
    except (DatabaseUnavailable, BackendUnavailable) as error:
        if not error.retryable:
            raise
        raise type(error)(
            f"waited {seconds:g} seconds in vain for {where}: {error.message}",
            hint=f"{hint}; common.database.connect_wait_seconds is how long to wait",
        ) from None
    _log.warning("%s answered", where)


@contextmanager
def _attempts_at_debug(where: str) -> Iterator[None]:
    """Log attempts at debug level instead of stamina's hook, which prints to stdout if structlog is not configured."""
    from stamina.instrumentation import get_on_retry_hooks, set_on_retry_hooks

    def report(details: RetryDetails) -> None:
        reason = str(details.caused_by).replace("\n", " ")
        _log.debug("waiting for %s attempt=%s next_in_s=%.1f: %s", where, details.retry_num, details.wait_for, reason)

    before = get_on_retry_hooks()
    set_on_retry_hooks([report])
    try:
        yield
    finally:
        set_on_retry_hooks(before)
