"""Limits of what runs at the same time, with what runs and waits under each."""

from __future__ import annotations

from collections.abc import Sequence

from tasker.engine.calls import Engine
from tasker.operations.fleet import LIMIT_KEYS
from tasker.views.fleet import LimitUse
from tasker.views.model import decode

LIMITS = 200
"""Number of limits in a list."""


class Limits:
    """Use cases of limits."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine

    async def list(self, name: str | None = None, *, keys: int = LIMIT_KEYS) -> Sequence[LimitUse]:
        """Return the limits by name: at most 200 of them, each with up to `keys` values of its key."""
        args = {"name": name, "limits": LIMITS, "keys": keys}
        return [decode(LimitUse, row) for row in (await self._engine.read("limits", args))["limits"]]
