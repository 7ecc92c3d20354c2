"""A handler that waits."""

from __future__ import annotations

import asyncio
from typing import Any

from tasker.handlers.decorators import inputs, step_handler


@step_handler("bench.nap")
@inputs("seconds")
async def nap(seconds: float, context: Any) -> dict[str, Any]:
    """Wait on the loop."""
    await asyncio.sleep(seconds)
    return {"value": 1}
