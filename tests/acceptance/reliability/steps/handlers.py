"""Handlers that do what the task's input says."""

from __future__ import annotations

import asyncio
from typing import Any

from tasker.errors import PermanentError, RetryableError
from tasker.handlers.decorators import inputs, step_handler
from tasker.handlers.step_handler import checkpoint_yield

FATAL = 750
_together: set[str] = set()
_most = 0


@step_handler("steps.fated")
@inputs("fates")
async def fated(fates: dict[str, str], context: Any) -> dict[str, Any]:
    """Succeed, or fail for good, once or always, as `fates` says of this step."""
    match fates.get(context.step_name, "ok"):
        case "permanent":
            raise PermanentError("never")
        case "once" if context.retry_count == 0:
            raise RetryableError("not the first time")
        case "always":
            raise RetryableError("not now")
    return {"step": context.step_name}


@step_handler("steps.meet")
@inputs("guests")
async def meet(guests: int, context: Any) -> dict[str, Any]:
    """Return once that many steps have run at the same time; the result says how many did at most."""
    global _most
    _together.add(str(context.step_uuid))
    _most = max(_most, len(_together))
    while _most < guests:
        await asyncio.sleep(0.001)
    _together.discard(str(context.step_uuid))
    return {"most": _most}


@step_handler("steps.items")
@inputs("seconds", "fails")
async def items(seconds: float, fails: str, context: Any) -> dict[str, Any]:
    """Work on 1,000 items, with a checkpoint after each 250, which take `seconds`; the result says where runs began.

    Item 750 fails as `fails` says.
    """
    saved = context.checkpoint or {}
    start = saved.get("cursor", 0)
    began = [*(saved.get("accumulated_results") or {}).get("began", []), start]
    await asyncio.sleep(seconds)
    if start == FATAL and (fails == "permanent" or (fails == "once" and context.retry_count == 0)):
        raise (PermanentError if fails == "permanent" else RetryableError)(f"item {FATAL} did not come")
    if start + 250 < 1_000:
        checkpoint_yield(start + 250, start + 250, {"began": began})
    return {"began": began}
