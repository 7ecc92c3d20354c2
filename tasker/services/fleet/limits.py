"""Limits of what runs at the same time, with what runs and waits under each."""

from __future__ import annotations

from collections.abc import Sequence

from tasker.engine.calls import Engine
from tasker.operations.fleet import LIMIT_KEYS
from tasker.services.viewer import Redaction, Viewed
from tasker.views.fleet import LimitUse
from tasker.views.model import decode

LIMITS = 200
"""Number of limits in a list."""


class Limits(Viewed):
    """Use cases of limits."""

    def __init__(self, engine: Engine, redaction: Redaction | None = None) -> None:
        self._engine, self._redaction = engine, redaction

    async def list(self, name: str | None = None, *, keys: int = LIMIT_KEYS) -> Sequence[LimitUse]:
        """Return the limits by name: at most 200 of them, each with up to `keys` values of its key.

        Keys are parts of inputs and results: only a viewer who may read all sensitive values gets them.
        """
        args = {"name": name, "limits": LIMITS, "keys": keys}
        limits = [decode(LimitUse, row) for row in (await self._engine.read("limits", args))["limits"]]
        return limits if self._viewer.sees_everything else [use.without_keys() for use in limits]
