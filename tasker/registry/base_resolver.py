"""Base class of resolvers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from tasker.registry.handler_definition import HandlerDefinition


class BaseResolver(ABC):
    """Finds the handler for a definition. Resolvers are called in the order of `priority`, lowest first.

    A resolver may also use the form in which everything is a method: `resolver_name()`, `priority()`,
    `can_resolve(definition)` and `resolve(definition, context)`, which may be asynchronous.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Define `name` for a class with the method `resolver_name`."""
        super().__init_subclass__(**options)
        if "resolver_name" in vars(cls):
            cls.name = property(lambda self: self.resolver_name())  # type: ignore[method-assign,assignment]

    @property
    @abstractmethod
    def name(self) -> str:
        """Name by which a template refers to the resolver (`resolver`)."""

    @property
    @abstractmethod
    def priority(self) -> int:
        """Position in the chain: explicit mapping is 10, class lookup 100."""

    @abstractmethod
    def can_resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> bool:
        """Return True if this resolver can try the definition."""

    @abstractmethod
    def resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> Any | None:
        """Return a handler (or a class or decorated function), or None to let the next resolver try."""

    def registered_callables(self) -> list[str]:
        """Return the callables that this resolver knows by name."""
        return []
