"""Resolvers in order: the first that finds a handler wins."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from typing import Any

from tasker.errors import ResolutionError, ResolverNotFoundError
from tasker.registry.base_resolver import BaseResolver
from tasker.registry.handler_definition import HandlerDefinition
from tasker.registry.handler_object import to_handler
from tasker.registry.method_dispatch_wrapper import MethodDispatchWrapper
from tasker.registry.published_form import answer_of, priority_of, wants
from tasker.registry.resolvers.class_lookup import ClassLookupResolver
from tasker.registry.resolvers.entry_points import EntryPointResolver
from tasker.registry.resolvers.explicit_mapping import ExplicitMappingResolver
from tasker.registry.resolvers.module_names import ModuleNamesResolver

__all__ = ["ResolutionError", "ResolverChain", "ResolverNotFoundError"]

log = logging.getLogger("tasker.registry")


class ResolverChain:
    """An ordered set of resolvers. Order comes from priority, not from registration."""

    def __init__(self) -> None:
        self._resolvers: list[BaseResolver] = []

    @classmethod
    def default(cls) -> ResolverChain:
        """Explicit names (10), names from handler modules (20), installed packages (90), class paths (100)."""
        chain = cls()
        for resolver in (ExplicitMappingResolver(), ModuleNamesResolver(), EntryPointResolver(), ClassLookupResolver()):
            chain.add_resolver(resolver)
        return chain

    @property
    def resolvers(self) -> list[BaseResolver]:
        """The resolvers, first asked first."""
        return list(self._resolvers)

    def add_resolver(self, resolver: BaseResolver) -> ResolverChain:
        """Put a resolver in its place; one of the same name is replaced."""
        others = [known for known in self._resolvers if known.name != resolver.name]
        self._resolvers = sorted([*others, resolver], key=priority_of)
        return self

    def adopt(self, other: ResolverChain) -> None:
        """Put those of another chain in their places whose names this one has not."""
        known = {resolver.name for resolver in self._resolvers}
        for resolver in other.resolvers:
            if resolver.name not in known:
                self.add_resolver(resolver)

    def remove_resolver(self, name: str) -> BaseResolver | None:
        """Take a resolver out and return it; None when there is none of that name."""
        found = self.get_resolver(name)
        self._resolvers = [known for known in self._resolvers if known is not found]
        return found

    def get_resolver(self, name: str) -> BaseResolver | None:
        """The resolver of that name."""
        return next((known for known in self._resolvers if known.name == name), None)

    @property
    def explicit_resolver(self) -> BaseResolver | None:
        """The resolver that `register` writes to."""
        return next((known for known in self._resolvers if isinstance(known, ExplicitMappingResolver)), None)

    def resolve(
        self,
        definition: HandlerDefinition,
        config: dict[str, Any] | None = None,
        *,
        first: Sequence[BaseResolver] = (),
    ) -> Any | None:
        """The handler, wrapped when the definition names a method; None when nobody knows the callable.

        The resolvers `first` are asked before those of the chain. A `resolver` hint is asked before all; when it is
        unknown or finds nothing, the others decide and a warning says so. Raises `MethodNotFound`, and
        `HandlerLoadError` for code that is there and broken.
        """
        found = self.find(definition, config, [*first, *self._resolvers])
        return None if found is None else self.made(found, definition)

    def made(self, found: Any, definition: HandlerDefinition) -> Any:
        """The handler of what a resolver has found, wrapped when the definition names a method."""
        return self.wrap_for_method_dispatch(to_handler(found, definition.callable), definition)

    def find(
        self, definition: HandlerDefinition, config: dict[str, Any] | None, resolvers: Sequence[BaseResolver]
    ) -> Any | None:
        """What the first of the resolvers that knows the callable has for it: a class, a function or an object."""
        if definition.resolver:
            hinted = [known for known in resolvers if known.name == definition.resolver]
            found = _ask(hinted, definition, config)
            if found is not None:
                return found
            problem = "does not know the callable" if hinted else f"is unknown (there are: {self.resolver_names})"
            log.warning("resolver %r %s, asking the others for %r", definition.resolver, problem, definition.callable)
        return _ask((known for known in resolvers if wants(known, definition, config)), definition, config)

    def can_resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> bool:
        """True when some resolver wants to try."""
        return any(wants(resolver, definition, config) for resolver in self._resolvers)

    def registered_callables(self) -> list[str]:
        """Every callable that is known by name, sorted."""
        return sorted({name for resolver in self._resolvers for name in resolver.registered_callables()})

    def register(self, key: str | BaseResolver, handler: Any = None) -> ResolverChain:
        """Register a class, a decorated function or an object under a name; or a resolver, as `add_resolver`."""
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
        """Name, priority and number of known callables of each resolver."""
        return [
            {"name": known.name, "priority": priority_of(known), "callables": len(known.registered_callables())}
            for known in self._resolvers
        ]

    @property
    def resolver_names(self) -> list[str]:
        """The names, first asked first."""
        return [known.name for known in self._resolvers]

    def list_resolvers(self) -> list[tuple[str, int]]:
        """Name and priority of each."""
        return [(known.name, priority_of(known)) for known in self._resolvers]

    def wrap_for_method_dispatch(self, handler: Any, definition: HandlerDefinition) -> Any:
        """The handler, or a wrapper when the definition names another method than `call`."""
        if not definition.uses_method_dispatch():
            return handler
        return MethodDispatchWrapper(handler, definition.effective_method())


def _ask(resolvers: Iterable[BaseResolver], definition: HandlerDefinition, config: dict[str, Any] | None) -> Any | None:
    answers = (answer_of(resolver, definition, config) for resolver in resolvers)
    return next((found for found in answers if found is not None), None)
