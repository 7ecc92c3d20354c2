"""Names that somebody registered."""

from __future__ import annotations

from typing import Any

from tasker.registry import ExplicitMappingResolver as EngineMapping
from tasker.registry import HandlerDefinition
from tasker_core.registry.resolvers.instances import instance


class ExplicitMappingResolver(EngineMapping):
    """An exact match in a dictionary: of a class a handler is made, a function is asked for one."""

    def resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> Any | None:
        """The handler that was registered, or one that is made of it."""
        found = super().resolve(definition, config)
        if isinstance(found, type):
            return instance(found, definition)
        return found(config or {}) if callable(found) and not hasattr(found, "call") else found
