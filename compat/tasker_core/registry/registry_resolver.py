"""Base class of custom resolvers."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from tasker.handlers.registry.resolver import BaseResolver, HandlerDefinition


class RegistryResolver(BaseResolver):
    """Resolver for callables of one form. Set the class attributes and define `resolve_handler`.

    A callable matches if `pattern` (a regular expression) matches its beginning or, without one, if it starts with
    `prefix`. Without either, none matches.
    """

    _name: ClassVar[str] = "custom_resolver"
    _priority: ClassVar[int] = 50
    pattern: ClassVar[str | None] = None
    prefix: ClassVar[str | None] = None

    def __init__(self) -> None:
        self._expression = re.compile(self.pattern) if self.pattern else None

    @property
    def name(self) -> str:
        """`_name`."""
        return self._name

    @property
    def priority(self) -> int:
        """`_priority`."""
        return self._priority

    def can_resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> bool:
        """Return True if the callable matches."""
        if self._expression is not None:
            return self._match_pattern(definition.callable) is not None
        return bool(self.prefix) and definition.callable.startswith(self.prefix or "")

    def resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> Any | None:
        """Return the result of `resolve_handler`."""
        return self.resolve_handler(definition, config or {})

    def resolve_handler(self, definition: HandlerDefinition, config: dict[str, Any]) -> Any | None:
        """Return the handler of a matching callable; None lets the next resolver try. Must be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must define resolve_handler(definition, config)")

    def _match_pattern(self, callable_str: str) -> re.Match[str] | None:
        """Return the match of `pattern` in a callable."""
        return self._expression.match(callable_str) if self._expression else None
