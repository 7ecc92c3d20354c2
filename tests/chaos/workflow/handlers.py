"""Handlers that take a moment."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from tasker.errors import RetryableError
from tasker.step_handler.functional import inputs, step_handler


@step_handler("chaos.slow")
@inputs("seconds")
async def slow(seconds: float, context: Any) -> dict[str, Any]:
    """Wait on the loop."""
    await asyncio.sleep(seconds)
    return {"step": str(context.step_uuid)}


@step_handler("chaos.slow_sync")
@inputs("seconds")
def slow_sync(seconds: float, context: Any) -> dict[str, Any]:
    """Wait in a thread."""
    threading.Event().wait(seconds)  # not time.sleep, which fails where the clock is faked
    return {"step": str(context.step_uuid)}


@step_handler("chaos.flaky")
async def flaky(context: Any) -> dict[str, Any]:
    """Fail at the first attempt."""
    if context.retry_count == 0:
        raise RetryableError("not this time")
    return {"step": str(context.step_uuid)}
