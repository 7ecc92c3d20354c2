"""Waiting, at the start of a process, for a broker that is not there yet."""

from __future__ import annotations

import logging

from tasker.db.awaited import LONGEST_PAUSE_SECONDS, reported
from tasker.errors import BackendUnavailable
from tasker.messaging.service import MessagingService

_log = logging.getLogger("tasker.process")


async def open_broker(messaging: MessagingService, wait_seconds: float) -> None:
    """Connect; what does not answer is tried again with growing pauses for `wait_seconds`, and the log says so.

    Raises `BackendUnavailable`: after that time, and at once for what waiting does not mend (a wrong password).
    """
    try:
        await messaging.open()
    except BackendUnavailable as error:
        if not wait_seconds or not error.retryable:
            raise
        where = f"the broker ({messaging.provider_name()})"
        _log.warning("waiting for %s, at most %g seconds: %s", where, wait_seconds, error.message)
        with reported(_log, where):
            await _await_broker(messaging, wait_seconds)


async def _await_broker(messaging: MessagingService, seconds: float) -> None:
    import stamina

    try:
        async for attempt in stamina.retry_context(
            on=_may_come, attempts=None, timeout=seconds, wait_max=LONGEST_PAUSE_SECONDS, wait_jitter=0.5
        ):
            with attempt:
                await messaging.open()
    except BackendUnavailable as error:
        if not error.retryable:
            raise
        raise BackendUnavailable(
            f"waited {seconds:g} seconds in vain for the broker: {error.message}",
            hint=f"start the broker, or check the setting common.queues.{messaging.provider_name()}.url;"
            " common.database.connect_wait_seconds is how long to wait",
        ) from None


def _may_come(error: Exception) -> bool:
    return isinstance(error, BackendUnavailable) and error.retryable
