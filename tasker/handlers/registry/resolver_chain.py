"""Chain of resolvers: the first one that finds a handler wins."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from tasker.errors import ResolutionError, ResolverNotFoundError
from tasker.handlers.registry.invocation import MethodDispatchWrapper, to_handler
from tasker.handlers.registry.resolver import BaseResolver, HandlerDefinition, answer_of, priority_of, wants
from tasker.handlers.registry.resolvers import (
    BuiltinResolver,
    ClassLookupResolver,
    EntryPointResolver,
    ExplicitMappingResolver,
    ModuleNamesResolver,
)

__all__ = ["ResolutionError", "ResolverChain", "ResolverNotFoundError"]

log = logging.getLogger("tasker.registry")


class ResolverChain:
    """Resolvers ordered by priority, not by registration."""

    def __init__(self) -> None:
        self._resolvers: list[BaseResolver] = []

    @classmethod
    def default(cls) -> ResolverChain:
        """Return a chain of the built-in resolvers.

        These are explicit names (10), names from handler modules (20), built-in steps (80), installed packages (90)
        and class paths (100).
        """
        chain = cls()
        for resolver in (
            ExplicitMappingResolver(),
            ModuleNamesResolver(),
            BuiltinResolver(),
            EntryPointResolver(),
            ClassLookupResolver(),
        ):
            chain.add_resolver(resolver)
        return chain

    @property
    def resolvers(self) -> list[BaseResolver]:
        """The resolvers in the order in which they are called."""
        return list(self._resolvers)

    def add_resolver(self, resolver: BaseResolver) -> ResolverChain:
        """Add a resolver at the position of its priority; one of the same name is replaced."""
        others = [known for known in self._resolvers if known.name != resolver.name]
        self._resolvers = sorted([*others, resolver], key=priority_of)
        return self

    def adopt(self, other: ResolverChain) -> None:
        """Add the resolvers of another chain whose names this one lacks."""
        known = {resolver.name for resolver in self._resolvers}
        for resolver in other.resolvers:
            if resolver.name not in known:
                self.add_resolver(resolver)

    def remove_resolver(self, name: str) -> BaseResolver | None:
        """Remove a resolver and return it; None if there is none of that name."""
        resolver = self.get_resolver(name)
        self._resolvers = [known for known in self._resolvers if known is not resolver]
        return resolver

    def get_resolver(self, name: str) -> BaseResolver | None:
        """Return the resolver of that name, or None."""
        return next((known for known in self._resolvers if known.name == name), None)

    @property
    def explicit_resolver(self) -> BaseResolver | None:
        """Resolver that `register` writes to, or None."""
        return next((known for known in self._resolvers if isinstance(known, ExplicitMappingResolver)), None)

    def resolve(
        self,
        definition: HandlerDefinition,
        config: dict[str, Any] | None = None,
        *,
        first: Sequence[BaseResolver] = (),
    ) -> Any | None:
        """Return the handler, wrapped if the definition names a method; None if no resolver knows the callable.

        The resolvers `first` are called before those of the chain. The resolver that the definition names is called
        before all; if it is unknown or finds nothing, a warning is logged and the others decide. Raises
        `MethodNotFound`, and `HandlerLoadError` for code that exists but fails to load.
        """
        result = self.find(definition, config, [*first, *self._resolvers])
        return None if result is None else self.made(result, definition)

    def made(self, resolved: Any, definition: HandlerDefinition) -> Any:
        """Return the handler for a resolver's result, wrapped if the definition names a method."""
        return self.wrap_for_method_dispatch(to_handler(resolved, definition.callable), definition)

    def find(
        self, definition: HandlerDefinition, config: dict[str, Any] | None, resolvers: Sequence[BaseResolver]
    ) -> Any | None:
        """Return the result of the first resolver that knows the callable (a class, function or object), or None."""
        if definition.resolver:
            hinted = [known for known in resolvers if known.name == definition.resolver]
            result = _ask(hinted, definition, config)
            if result is not None:
                return result
            problem = "does not know the callable" if hinted else f"is unknown (there are: {self.resolver_names})"
            log.warning("resolver %r %s, asking the others for %r", definition.resolver, problem, definition.callable)
        return _ask((known for known in resolvers if wants(known, definition, config)), definition, config)

    def can_resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> bool:
        """Return True if a resolver can try the definition."""
        return any(wants(resolver, definition, config) for resolver in self._resolvers)

    def registered_callables(self) -> list[str]:
        """Return every callable that is known by name, sorted."""
        return sorted({name for resolver in self._resolvers for name in resolver.registered_callables()})

    def register(self, key: str | BaseResolver, handler: Any = None) -> ResolverChain:
        """Register a class, a decorated function or an object under a name; or a resolver, see `add_resolver`."""
        if isinstance(key, BaseResolver):
            return self.add_resolver(key)
        explicit = self.explicit_resolver
        if not isinstance(explicit, ExplicitMappingResolver):
            raise ResolverNotFoundError(
                "the chain has no explicit mapping", hint="call add_resolver(ExplicitMappingResolver())"
            )
        explicit.register(key, handler)
        return self

    def chain_info(self) -> list[dict[str, Any]]:
        """Return name, priority and number of known callables of each resolver."""
        return [
            {"name": known.name, "priority": priority_of(known), "callables": len(known.registered_callables())}
            for known in self._resolvers
        ]

    @property
    def resolver_names(self) -> list[str]:
        """Names of the resolvers in the order in which they are called."""
        return [known.name for known in self._resolvers]

    def list_resolvers(self) -> list[tuple[str, int]]:
        """Return name and priority of each resolver."""
        return [(known.name, priority_of(known)) for known in self._resolvers]

    def wrap_for_method_dispatch(self, handler: Any, definition: HandlerDefinition) -> Any:
        """Return the handler, wrapped if the definition names a method other than `call`."""
        if not definition.uses_method_dispatch():
            return handler
        return MethodDispatchWrapper(handler, definition.effective_method())


def _ask(resolvers: Iterable[BaseResolver], definition: HandlerDefinition, config: dict[str, Any] | None) -> Any | None:
    answers = (answer_of(resolver, definition, config) for resolver in resolvers)
    return next((answer for answer in answers if answer is not None), None)
