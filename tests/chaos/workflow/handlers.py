"""Handlers that take a moment. Each run of one returns a fresh value, and tells which values it has read of others."""

from __future__ import annotations

import asyncio
import threading
from typing import Any
from uuid import uuid4

from tasker.errors import RetryableError
from tasker.handlers.decorators import inputs, step_handler


@step_handler("chaos.slow")
@inputs("seconds")
async def slow(seconds: float, context: Any) -> dict[str, Any]:
    """Wait on the loop."""
    await asyncio.sleep(seconds)
    return told(context)


@step_handler("chaos.slow_sync")
@inputs("seconds")
def slow_sync(seconds: float, context: Any) -> dict[str, Any]:
    """Wait in a thread."""
    threading.Event().wait(seconds)  # not time.sleep, which fails where the clock is faked
    return told(context)


@step_handler("chaos.flaky")
async def flaky(context: Any) -> dict[str, Any]:
    """Fail at the first attempt."""
    if context.retry_count == 0:
        raise RetryableError("not this time")
    return told(context)


def told(context: Any) -> dict[str, Any]:
    """Which step this is, a value of this run alone, and the values that the results above it have."""
    names = context.get_dependency_result_keys()
    read = {name: context.get_dependency_result(name)["value"] for name in names}
    return {"step": str(context.step_uuid), "value": str(uuid4()), "read": read}
