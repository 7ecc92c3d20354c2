"""Resolver for aliases of handlers that were loaded from modules: class name and dotted name."""

from __future__ import annotations

import logging
from typing import Any

from tasker.registry.handler_definition import HandlerDefinition
from tasker.registry.resolvers.explicit_mapping import ExplicitMappingResolver

log = logging.getLogger("tasker.registry")


class ModuleNamesResolver(ExplicitMappingResolver):
    """Dictionary of aliases, after the explicit mapping. An alias that two handlers share resolves to neither."""

    def __init__(self, name: str = "module_names") -> None:
        super().__init__(name)
        self._places: dict[str, list[str]] = {}

    @property
    def priority(self) -> int:
        """Position in the chain: after the explicit mapping."""
        return 20

    def offer(self, key: str, handler: Any, place: str) -> None:
        """Register the handler at `place` (file and name); a handler from an earlier load of that file is replaced.

        An alias that a handler of another place has too is dropped; a warning is logged when a template uses it.
        """
        places = self._places.setdefault(key, [])
        if place not in places:
            places.append(place)
        if len(places) > 1:
            self.unregister(key)
        else:
            self.register(key, handler)

    def can_resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> bool:
        """Return True if the alias was offered."""
        return definition.callable in self._places

    def resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> Any | None:
        """Return the handler of the alias; None, with a warning, if several handlers share it."""
        places = self._places.get(definition.callable, [])
        if len(places) > 1:
            shared = "%r names several handlers and leads to none of them (%s): call each by its handler_name"
            log.warning(shared, definition.callable, ", ".join(places))
        return super().resolve(definition, config)

    def clear(self) -> None:
        """Remove all aliases."""
        super().clear()
        self._places.clear()
