"""Names that somebody registered."""

from __future__ import annotations

from typing import Any

from tasker.registry.base_resolver import BaseResolver
from tasker.registry.handler_definition import HandlerDefinition


class ExplicitMappingResolver(BaseResolver):
    """An exact match in a dictionary."""

    def __init__(self, name: str = "explicit_mapping") -> None:
        self._name = name
        self._handlers: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """The name given at its making."""
        return self._name

    @property
    def priority(self) -> int:
        """First."""
        return 10

    def can_resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> bool:
        """True when the callable is registered."""
        return definition.callable in self._handlers

    def resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> Any | None:
        """What was registered."""
        return self._handlers.get(definition.callable)

    def register(self, key: str, handler: Any) -> None:
        """Register; an earlier registration of the name is replaced."""
        self._handlers[key] = handler

    def unregister(self, key: str) -> bool:
        """Forget a name; False when it was not registered."""
        return self._handlers.pop(key, None) is not None

    def get(self, key: str) -> Any | None:
        """What is registered under the name."""
        return self._handlers.get(key)

    def clear(self) -> None:
        """Forget everything."""
        self._handlers.clear()

    def registered_callables(self) -> list[str]:
        """The names, in the order of registration."""
        return list(self._handlers)
