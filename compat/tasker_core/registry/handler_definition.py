"""Which code runs a step, as the template says it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tasker.registry import HandlerDefinition as EngineDefinition


@dataclass
class HandlerDefinition(EngineDefinition):
    """`callable` says where, `handler_method` which entry, `resolver` how; `initialization` is the step's config."""

    @classmethod
    def from_dict(cls, data: dict[str, Any] | None) -> HandlerDefinition:
        """The long form; without a callable it is empty."""
        values = data or {}
        return cls(
            callable=values.get("callable", ""),
            handler_method=values.get("method") or values.get("handler_method"),
            resolver=values.get("resolver"),
            initialization=values.get("initialization") or {},
        )
