"""Resolvers in order: the first that finds a handler wins (D-40, D-41, D-45)."""

from __future__ import annotations

import logging
from typing import Any

from tasker.errors import ResolutionError, ResolverNotFoundError
from tasker.registry.base_resolver import BaseResolver
from tasker.registry.handler_definition import HandlerDefinition
from tasker.registry.handler_object import to_handler
from tasker.registry.method_dispatch_wrapper import MethodDispatchWrapper
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
        self._resolvers = sorted([*others, resolver], key=lambda known: known.priority)
        return self

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

    def resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> Any | None:
        """The handler, wrapped when the definition names a method; None when nobody knows the callable.

        A `resolver` hint is asked first; when it is unknown or finds nothing, the chain decides and a warning says so.
        Raises `MethodNotFound`, and `HandlerLoadError` for code that is there and broken.
        """
        found = self._find(definition, config)
        if found is None:
            return None
        return self.wrap_for_method_dispatch(to_handler(found, definition.callable), definition)

    def _find(self, definition: HandlerDefinition, config: dict[str, Any] | None) -> Any | None:
        hinted = self._ask_hinted(definition, config) if definition.resolver else None
        return self._ask_all(definition, config) if hinted is None else hinted

    def _ask_hinted(self, definition: HandlerDefinition, config: dict[str, Any] | None) -> Any | None:
        resolver = self.get_resolver(definition.resolver or "")
        found = resolver.resolve(definition, config) if resolver else None
        if found is None:
            problem = "does not know the callable" if resolver else f"is unknown (there are: {self.resolver_names})"
            log.warning("resolver %r %s, asking the others for %r", definition.resolver, problem, definition.callable)
        return found

    def _ask_all(self, definition: HandlerDefinition, config: dict[str, Any] | None) -> Any | None:
        for resolver in self._resolvers:
            if resolver.can_resolve(definition, config):
                found = resolver.resolve(definition, config)
                if found is not None:
                    return found
        return None

    def can_resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> bool:
        """True when some resolver wants to try."""
        return any(resolver.can_resolve(definition, config) for resolver in self._resolvers)

    def registered_callables(self) -> list[str]:
        """Every callable that is known by name, sorted."""
        return sorted({name for resolver in self._resolvers for name in resolver.registered_callables()})

    def register(self, key: str, handler: Any) -> ResolverChain:
        """Register a class, a decorated function or an object under a name."""
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
            {"name": known.name, "priority": known.priority, "callables": len(known.registered_callables())}
            for known in self._resolvers
        ]

    @property
    def resolver_names(self) -> list[str]:
        """The names, first asked first."""
        return [known.name for known in self._resolvers]

    def list_resolvers(self) -> list[tuple[str, int]]:
        """Name and priority of each."""
        return [(known.name, known.priority) for known in self._resolvers]

    def wrap_for_method_dispatch(self, handler: Any, definition: HandlerDefinition) -> Any:
        """The handler, or a wrapper when the definition names another method than `call`."""
        if not definition.uses_method_dispatch():
            return handler
        return MethodDispatchWrapper(handler, definition.effective_method())
