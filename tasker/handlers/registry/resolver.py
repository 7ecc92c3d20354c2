"""Base class of resolvers, and what they get to resolve."""

from __future__ import annotations

import asyncio
import inspect
import re
from abc import ABC, abstractmethod
from collections.abc import Awaitable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import field
from typing import Any, ClassVar

from tasker.dataclasses import dataclass
from tasker.errors import ConfigurationError
from tasker.template.plan import HandlerRef

DEFAULT_METHOD = "call"


@dataclass
class HandlerDefinition:
    """Handler of a step as written in the template.

    `callable` locates the handler, `handler_method` names its method, `resolver` the resolver to use; `initialization`
    is the step's configuration.
    """

    callable: str
    handler_method: str | None = None
    resolver: str | None = None
    initialization: dict[str, Any] = field(default_factory=dict)

    def effective_method(self) -> str:
        """Return the method to call: `call` unless the template names another."""
        return self.handler_method or DEFAULT_METHOD

    @property
    def method(self) -> str:
        """Method to call; see `effective_method`."""
        return self.effective_method()

    def uses_method_dispatch(self) -> bool:
        """Return True if the method is not `call`."""
        return self.effective_method() != DEFAULT_METHOD

    def has_resolver_hint(self) -> bool:
        """Return True if the template names a resolver."""
        return bool(self.resolver)

    @classmethod
    def from_callable(cls, callable_str: str) -> HandlerDefinition:
        """Return the definition for a bare callable (the short form)."""
        return cls(callable=callable_str)

    @classmethod
    def from_dict(cls, data: dict[str, Any] | None) -> HandlerDefinition:
        """Return the definition for a mapping (the long form).

        `method` is an alias of `handler_method`. Raises `ConfigurationError` without a callable.
        """
        values = data or {}
        if not values.get("callable"):
            raise ConfigurationError(f"a handler needs a callable, found {data!r}", hint="write {callable: my_handler}")
        return cls(
            callable=values["callable"],
            handler_method=values.get("handler_method") or values.get("method"),
            resolver=values.get("resolver"),
            initialization=dict(values.get("initialization") or {}),
        )

    @classmethod
    def from_plan(cls, handler: HandlerRef) -> HandlerDefinition:
        """Return the definition of a compiled step."""
        return cls(handler.callable, handler.method, handler.resolver, dict(handler.initialization))


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


@dataclass(frozen=True, slots=True)
class ResolutionContext:
    """Additional argument of a resolver: the step's `initialization`."""

    config: dict[str, Any] = field(default_factory=dict)


def priority_of(resolver: BaseResolver) -> int:
    """Return the resolver's priority, in either form."""
    priority: Any = resolver.priority
    return int(priority() if callable(priority) else priority)


def wants(resolver: BaseResolver, definition: HandlerDefinition, config: dict[str, Any] | None) -> bool:
    """Return True if the resolver can try the definition."""
    return resolver.can_resolve(definition) if _published(resolver) else resolver.can_resolve(definition, config)


def answer_of(resolver: BaseResolver, definition: HandlerDefinition, config: dict[str, Any] | None) -> Any | None:
    """Return the resolver's result; an asynchronous one is awaited, since a handler is resolved only once."""
    if not _published(resolver):
        return resolver.resolve(definition, config)
    context: Any = ResolutionContext(dict(config or {}))
    result = resolver.resolve(definition, context)
    return _finished(result) if inspect.isawaitable(result) else result


def _published(resolver: BaseResolver) -> bool:
    return hasattr(resolver, "resolver_name")


def _finished(answer: Awaitable[Any]) -> Any:
    """Run the awaitable in a new event loop in a thread, since a loop may be running in this one."""

    async def wait() -> Any:
        return await answer

    with ThreadPoolExecutor(1, "tasker resolver") as thread:
        return thread.submit(asyncio.run, wait()).result()


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
