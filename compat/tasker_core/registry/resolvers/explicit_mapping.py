"""Resolver of registered names."""

from __future__ import annotations

from typing import Any

from tasker.handlers.registry.resolver import HandlerDefinition
from tasker.handlers.registry.resolvers import ExplicitMappingResolver as EngineMapping
from tasker_core.registry.resolvers.instances import instance


class ExplicitMappingResolver(EngineMapping):
    """Exact match in a dictionary: a class is instantiated, a function is called for a handler."""

    def resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> Any | None:
        """Return the registered handler, or one created from the registered class or function."""
        entry = super().resolve(definition, config)
        if isinstance(entry, type):
            return instance(entry, definition)
        return entry(config or {}) if callable(entry) and not hasattr(entry, "call") else entry
