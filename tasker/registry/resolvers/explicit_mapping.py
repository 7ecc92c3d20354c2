"""Resolver for names that the program registered."""

from __future__ import annotations

from typing import Any

from tasker.registry.base_resolver import BaseResolver
from tasker.registry.handler_definition import HandlerDefinition


class ExplicitMappingResolver(BaseResolver):
    """Looks up the exact callable in a dictionary."""

    def __init__(self, name: str = "explicit_mapping") -> None:
        self._name = name
        self._handlers: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """Name given to the constructor."""
        return self._name

    @property
    def priority(self) -> int:
        """Position in the chain: first."""
        return 10

    def can_resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> bool:
        """Return True if the callable is registered."""
        return definition.callable in self._handlers

    def resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> Any | None:
        """Return the registered class, function or object, or None."""
        return self._handlers.get(definition.callable)

    def register(self, key: str, handler: Any) -> None:
        """Register a handler; an earlier registration of the name is replaced."""
        self._handlers[key] = handler

    def unregister(self, key: str) -> bool:
        """Remove a name; return False if it was not registered."""
        return self._handlers.pop(key, None) is not None

    def get(self, key: str) -> Any | None:
        """Return the class, function or object registered under the name, or None."""
        return self._handlers.get(key)

    def clear(self) -> None:
        """Remove all registrations."""
        self._handlers.clear()

    def registered_callables(self) -> list[str]:
        """Return the names in the order of registration."""
        return list(self._handlers)
