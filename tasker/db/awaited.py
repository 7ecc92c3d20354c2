"""Waiting, at the start of a process, for a database that is not there yet."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tasker.db.database import connect, describe_url
from tasker.errors import DatabaseUnavailable

if TYPE_CHECKING:
    from stamina.instrumentation import RetryDetails

LONGEST_PAUSE_SECONDS = 5.0
_log = logging.getLogger("tasker.database")


def await_database(url: str, seconds: float) -> None:
    """Return once the database answers; tried again with growing pauses for `seconds`, a log line for each attempt.

    Raises `DatabaseUnavailable`: after that time, and at once for what waiting does not mend (a wrong password, a
    database that does not exist).
    """
    import stamina

    where = describe_url(url)
    with reported(_log, where):
        try:
            for attempt in stamina.retry_context(
                on=_may_come, attempts=None, timeout=seconds, wait_max=LONGEST_PAUSE_SECONDS, wait_jitter=0.5
            ):
                with attempt:
                    connect(url).close()
        except DatabaseUnavailable as error:
            if not error.retryable:
                raise
            raise DatabaseUnavailable(
                f"waited {seconds:g} seconds in vain for {where}: {error.message}",
                hint="start the database, or check the URL; common.database.connect_wait_seconds is how long to wait",
            ) from None


def _may_come(error: Exception) -> bool:
    return isinstance(error, DatabaseUnavailable) and error.retryable


@contextmanager
def reported(log: logging.Logger, where: str) -> Iterator[None]:
    """Our line for each attempt, in place of what stamina prints (to stdout, where structlog is not configured)."""
    from stamina.instrumentation import get_on_retry_hooks, set_on_retry_hooks

    def report(details: RetryDetails) -> None:
        said = str(details.caused_by).replace("\n", " ")
        log.warning("waiting for %s attempt=%s next_in_s=%.1f: %s", where, details.retry_num, details.wait_for, said)

    before = get_on_retry_hooks()
    set_on_retry_hooks([report])
    try:
        yield
    finally:
        set_on_retry_hooks(before)
