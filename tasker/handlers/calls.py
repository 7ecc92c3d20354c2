"""Calls of a handler to its worker while it runs: for locks, and for the outputs of child tasks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class HandlerCalls(Protocol):
    """Calls of one attempt to its worker: `take`, `renew` or `release` a lock, read a `children_page`."""

    def call(self, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call and wait in this thread."""
        ...

    async def acall(self, action: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Call without blocking the event loop."""
        ...
