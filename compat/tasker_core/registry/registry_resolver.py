"""The base class for resolvers of your own."""

from __future__ import annotations

import re
from typing import Any, ClassVar

from tasker.registry import BaseResolver, HandlerDefinition


class RegistryResolver(BaseResolver):
    """A resolver for callables of one shape. Set the class attributes and write `resolve_handler`.

    A callable fits when `pattern` (a regular expression) matches its beginning or, without one, when it starts with
    `prefix`. Without either, none fits.
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
        """True when the callable has the shape."""
        if self._expression is not None:
            return self._match_pattern(definition.callable) is not None
        return bool(self.prefix) and definition.callable.startswith(self.prefix or "")

    def resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> Any | None:
        """What `resolve_handler` finds."""
        return self.resolve_handler(definition, config or {})

    def resolve_handler(self, definition: HandlerDefinition, config: dict[str, Any]) -> Any | None:
        """The handler for a callable of the shape; None lets the next resolver try. Raises unless it is overridden."""
        raise NotImplementedError(f"{type(self).__name__} must define resolve_handler(definition, config)")

    def _match_pattern(self, callable_str: str) -> re.Match[str] | None:
        """What `pattern` finds in a callable; its groups tell the parts."""
        return self._expression.match(callable_str) if self._expression else None
