"""Asking the database through an outage."""

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
    """What `ask` returns, asked again with growing pauses while the database is away or has no room.

    Whoever waits for a task waits through an outage; the reading behind it must not fail for its last moments: pooled
    connections that died in it, or the breaker, which lets one call at a time pass.
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
