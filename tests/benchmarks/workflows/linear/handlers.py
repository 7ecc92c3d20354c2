"""The smallest handler."""

from __future__ import annotations

from typing import Any

from tasker.handlers.decorators import step_handler


@step_handler("bench.nothing")
async def nothing(context: Any) -> dict[str, int]:
    """Do nothing."""
    return {"value": 1}
