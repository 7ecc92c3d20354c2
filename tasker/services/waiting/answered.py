"""Retries of reads during a database outage."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from tasker.contracts.backoff import BackoffPolicy
from tasker.errors import DatabaseError, TooManyConnections
from tasker.services.engine.guarded_connection import is_outage

T = TypeVar("T")
LOOKS = BackoffPolicy(0.02, 0.5)
"""Seconds between two attempts."""


async def retry_through_outage(ask: Callable[[], Awaitable[T]]) -> T:
    """Return the result of `ask`, repeated with growing pauses while the database is unavailable or has no free
    connection.

    A caller that waits for a task waits through an outage, so the read afterwards must not fail in the outage's last
    moments: on dead pooled connections, or on the breaker, which lets one call pass at a time.
    """
    failures = 0
    while True:
        try:
            return await ask()
        except DatabaseError as error:
            if not (error.retryable and (is_outage(error) or isinstance(error, TooManyConnections))):
                raise
        await asyncio.sleep(LOOKS.pause(failures))
        failures += 1
