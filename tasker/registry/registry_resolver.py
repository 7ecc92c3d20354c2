"""Base class for custom resolvers."""

from __future__ import annotations

import re
from abc import abstractmethod
from typing import Any, ClassVar

from tasker.registry.base_resolver import BaseResolver
from tasker.registry.handler_definition import HandlerDefinition


class RegistryResolver(BaseResolver):
    """Resolver for callables that match a prefix or a pattern. Set the class attributes and write `resolve_handler`.

    A callable matches if it starts with `prefix`, or if `pattern` (a regular expression) matches its beginning.
    `_match_pattern` is an alias of `pattern`. Without either, every callable matches.
    """

    pattern: ClassVar[str | None] = None
    prefix: ClassVar[str | None] = None
    _name: ClassVar[str] = ""
    _priority: ClassVar[int] = 50
    _match_pattern: ClassVar[str | re.Pattern[str] | None] = None

    def __init__(self) -> None:
        super().__init__()
        expression = self.pattern or self._match_pattern
        self._expression = re.compile(expression) if expression else None

    @property
    def name(self) -> str:
        """`_name`, or the name of the class."""
        return self._name or type(self).__name__

    @property
    def priority(self) -> int:
        """Position in the chain: `_priority`."""
        return self._priority

    def can_resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> bool:
        """Return True if the callable matches."""
        if self.prefix is None and self._expression is None:
            return True
        by_prefix = self.prefix is not None and definition.callable.startswith(self.prefix)
        return by_prefix or (self._expression is not None and bool(self._expression.match(definition.callable)))

    def resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> Any | None:
        """Return the result of `resolve_handler`; None for a callable that does not match."""
        return self.resolve_handler(definition, config or {}) if self.can_resolve(definition, config) else None

    @abstractmethod
    def resolve_handler(self, definition: HandlerDefinition, config: dict[str, Any]) -> Any | None:
        """Return a handler, or None."""
