"""Resolver of registered names."""

from __future__ import annotations

from typing import Any

from tasker.registry import ExplicitMappingResolver as EngineMapping
from tasker.registry import HandlerDefinition
from tasker_core.registry.resolvers.instances import instance


class ExplicitMappingResolver(EngineMapping):
    """Exact match in a dictionary: a class is instantiated, a function is called for a handler."""

    def resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> Any | None:
        """Return the registered handler, or one created from the registered class or function."""
        found = super().resolve(definition, config)
        if isinstance(found, type):
            return instance(found, definition)
        return found(config or {}) if callable(found) and not hasattr(found, "call") else found
