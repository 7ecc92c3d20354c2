"""Handlers that do nothing, and one that may fail."""

from __future__ import annotations

from typing import Any

from tasker.errors import PermanentError
from tasker.handlers.decorators import step_handler


@step_handler("pages.nothing")
async def nothing(context: Any) -> dict[str, int]:
    """Do nothing."""
    return {"value": 1}


@step_handler("pages.end")
async def end(context: Any) -> dict[str, int]:
    """Fail where the input says so."""
    if context.get_input("fail"):
        raise PermanentError("the card was refused", error_code="CARD_REFUSED")
    return {"value": 1}
