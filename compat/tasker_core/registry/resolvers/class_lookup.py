"""Resolver of dotted paths to classes."""

from __future__ import annotations

import re
from typing import Any

from tasker.errors import HandlerLoadError
from tasker.handlers.registry.resolver import HandlerDefinition
from tasker.handlers.registry.resolvers import ClassLookupResolver as EngineLookup
from tasker_core.registry.resolvers.instances import instance


class ClassLookupResolver(EngineLookup):
    """Resolver that imports `package.module.Class` and creates a handler of it."""

    CLASS_PATTERN = re.compile(r"^[a-zA-Z_][a-zA-Z0-9_]*(\.[a-zA-Z_][a-zA-Z0-9_]*)*\.[A-Z][a-zA-Z0-9_]*$")

    def can_resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> bool:
        """Return True for a dotted path whose last part begins with a capital."""
        return self.CLASS_PATTERN.match(definition.callable) is not None

    def resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> Any | None:
        """Return a handler of the class at the path, or None if there is none or its module fails."""
        try:
            resolved = super().resolve(definition, config)
        except HandlerLoadError:
            return None
        return instance(resolved, definition) if isinstance(resolved, type) else None
