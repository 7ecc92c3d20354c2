"""Ordered chain of resolvers: the first that finds a handler wins, unless the definition names one."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Any

from tasker.errors import ResolutionError, ResolverNotFoundError
from tasker.handlers.registry.invocation import to_handler
from tasker.handlers.registry.resolver import BaseResolver, HandlerDefinition, answer_of
from tasker.handlers.registry.resolver_chain import ResolverChain as EngineChain
from tasker_core.registry.method_dispatch_wrapper import MethodDispatchWrapper
from tasker_core.registry.resolvers import ClassLookupResolver, ExplicitMappingResolver
from tasker_core.registry.resolvers.instances import instance

__all__ = ["ResolutionError", "ResolverChain", "ResolverNotFoundError"]

log = logging.getLogger("tasker.registry")


class ResolverChain(EngineChain):
    """Ordered set of resolvers."""

    @classmethod
    def default(cls) -> ResolverChain:
        """Create a chain of explicit names (priority 10) and class paths (100)."""
        chain = cls()
        chain.add_resolver(ExplicitMappingResolver())
        chain.add_resolver(ClassLookupResolver())
        return chain

    @classmethod
    def over(cls, chain: EngineChain) -> ResolverChain:
        """Return a view of that chain with these methods: a resolver added to one is in the other."""
        view = cls.__new__(cls)
        view.__dict__ = chain.__dict__
        return view

    def resolve(
        self,
        definition: HandlerDefinition,
        config: dict[str, Any] | None = None,
        *,
        first: Sequence[BaseResolver] = (),
    ) -> Any | None:
        """Return the handler, wrapped if the definition names a method, or None if the callable is unknown.

        Only the resolver that the definition names is asked. Raises `ResolverNotFoundError` if there is none of that
        name.
        """
        resolved = self._found(definition, config or {}, first)
        if resolved is None:
            return None
        made = (
            instance(resolved, definition) if isinstance(resolved, type) else to_handler(resolved, definition.callable)
        )
        return None if made is None else self.wrap_for_method_dispatch(made, definition)

    def _found(self, definition: HandlerDefinition, config: dict[str, Any], first: Sequence[BaseResolver]) -> Any:
        if not definition.has_resolver_hint():
            return self.find(definition, config, [*first, *self.resolvers])
        resolver = self.get_resolver(definition.resolver or "")
        if resolver is None:
            raise ResolverNotFoundError(
                f"no resolver is called {definition.resolver!r}, there are {self.resolver_names}"
            )
        return answer_of(resolver, definition, config)

    def can_resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> bool:
        """Return True if the resolver that the definition names, or any resolver, can try."""
        if not definition.has_resolver_hint():
            return super().can_resolve(definition, config)
        resolver = self.get_resolver(definition.resolver or "")
        return resolver is not None and resolver.can_resolve(definition, config)

    def register(self, key: str | BaseResolver, handler: Any = None) -> ResolverChain:
        """Register a handler under a name. Raises `RuntimeError` if the chain has no explicit mapping."""
        try:
            super().register(key, handler)
        except ResolverNotFoundError as error:
            raise RuntimeError(str(error)) from error
        return self

    def wrap_for_method_dispatch(self, handler: Any, definition: HandlerDefinition) -> Any:
        """Return the handler, or a wrapper if the definition names a method, or None if it has no such method."""
        if not definition.uses_method_dispatch():
            return handler
        try:
            return MethodDispatchWrapper(handler, definition.effective_method())
        except AttributeError as error:
            log.warning("%s", error)
            return None

    def __len__(self) -> int:
        return len(self.resolvers)
