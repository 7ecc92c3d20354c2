"""Definition of a step's handler in the template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tasker.handlers.registry.resolver import HandlerDefinition as EngineDefinition


@dataclass
class HandlerDefinition(EngineDefinition):
    """Handler of a step: `callable` with `handler_method`, found by `resolver`; `initialization` is its config."""

    @classmethod
    def from_dict(cls, data: dict[str, Any] | None) -> HandlerDefinition:
        """Create from the long form; without a callable the definition is empty."""
        values = data or {}
        return cls(
            callable=values.get("callable", ""),
            handler_method=values.get("method") or values.get("handler_method"),
            resolver=values.get("resolver"),
            initialization=values.get("initialization") or {},
        )
