"""Resolution of a template's `callable` to the code that runs a step."""

from __future__ import annotations

from tasker.errors import MethodNotFound, ResolutionError, ResolverNotFoundError
from tasker.handlers.registry.invocation import HandlerSource, MethodDispatchWrapper, ResolvedHandler, resolve_for
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.handlers.registry.resolver import BaseResolver, HandlerDefinition, RegistryResolver, ResolutionContext
from tasker.handlers.registry.resolver_chain import ResolverChain
from tasker.handlers.registry.resolvers import ClassLookupResolver, EntryPointResolver, ExplicitMappingResolver

__all__ = [
    "BaseResolver",
    "ClassLookupResolver",
    "EntryPointResolver",
    "ExplicitMappingResolver",
    "HandlerDefinition",
    "HandlerRegistry",
    "HandlerSource",
    "MethodDispatchWrapper",
    "MethodNotFound",
    "RegistryResolver",
    "ResolutionContext",
    "ResolutionError",
    "ResolvedHandler",
    "ResolverChain",
    "ResolverNotFoundError",
    "resolve_for",
]
