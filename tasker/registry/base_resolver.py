"""What a resolver is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

from tasker.registry.handler_definition import HandlerDefinition


class BaseResolver(ABC):
    """Finds the handler for a definition. Resolvers are asked in the order of `priority`, lowest first.

    A resolver may also have the form of which everything is a method: `resolver_name()`, `priority()`,
    `can_resolve(definition)` and `resolve(definition, context)`, which may be asynchronous.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        """Give a class with `resolver_name` its `name`."""
        super().__init_subclass__(**options)
        if "resolver_name" in vars(cls):
            cls.name = property(lambda self: self.resolver_name())  # type: ignore[method-assign,assignment]

    @property
    @abstractmethod
    def name(self) -> str:
        """What a template writes under `resolver`."""

    @property
    @abstractmethod
    def priority(self) -> int:
        """Position in the chain: explicit mapping is 10, class lookup 100."""

    @abstractmethod
    def can_resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> bool:
        """True when this resolver wants to try."""

    @abstractmethod
    def resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> Any | None:
        """A handler, or None to let the next resolver try. A class or a decorated function will do as well."""

    def registered_callables(self) -> list[str]:
        """The callables that this resolver knows by name."""
        return []
