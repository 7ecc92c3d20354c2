"""Resolution of a template's `callable` to the code that runs a step."""

from __future__ import annotations

from tasker.errors import MethodNotFound, ResolutionError, ResolverNotFoundError
from tasker.registry.base_resolver import BaseResolver
from tasker.registry.handler_definition import HandlerDefinition
from tasker.registry.invocation import HandlerSource, ResolvedHandler, resolve_for
from tasker.registry.method_dispatch_wrapper import MethodDispatchWrapper
from tasker.registry.published_form import ResolutionContext
from tasker.registry.registry_resolver import RegistryResolver
from tasker.registry.resolver_chain import ResolverChain
from tasker.registry.resolvers import ClassLookupResolver, EntryPointResolver, ExplicitMappingResolver

__all__ = [
    "BaseResolver",
    "ClassLookupResolver",
    "EntryPointResolver",
    "ExplicitMappingResolver",
    "HandlerDefinition",
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
