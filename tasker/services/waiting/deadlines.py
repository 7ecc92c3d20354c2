"""One deadline for a task's submission and the following wait."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager


@asynccontextmanager
async def submission_deadline(timeout: float | None, key: str) -> AsyncGenerator[asyncio.Timeout]:
    """Cancel the enclosed submission of the task with that key after `timeout` seconds.

    Raises `TimeoutError` then; the database may still have carried out what was sent before.
    """
    try:
        async with asyncio.timeout(timeout) as limit:
            yield limit
    except TimeoutError:
        if not limit.expired():
            raise
        raise TimeoutError(
            f"the submission was not answered within {timeout:g} s: the task may have been created, or not. "
            f"To run it in either case: run(..., idempotency_key={key!r}, on_duplicate='return')"
        ) from None


def remaining_seconds(limit: asyncio.Timeout) -> float | None:
    """Return the seconds left until the deadline, to the millisecond and at least 0; None without a deadline."""
    end = limit.when()
    return None if end is None else max(0.0, round(end - asyncio.get_running_loop().time(), 3))
