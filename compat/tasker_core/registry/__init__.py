"""Resolution of a template's `callable` to the handler of a step."""

from __future__ import annotations

from tasker_core.registry.base_resolver import BaseResolver
from tasker_core.registry.handler_definition import HandlerDefinition
from tasker_core.registry.method_dispatch_wrapper import MethodDispatchWrapper
from tasker_core.registry.registry_resolver import RegistryResolver
from tasker_core.registry.resolver_chain import ResolutionError, ResolverChain, ResolverNotFoundError
from tasker_core.registry.resolvers import ClassLookupResolver, ExplicitMappingResolver

__all__ = [
    "BaseResolver",
    "ClassLookupResolver",
    "ExplicitMappingResolver",
    "HandlerDefinition",
    "MethodDispatchWrapper",
    "RegistryResolver",
    "ResolutionError",
    "ResolverChain",
    "ResolverNotFoundError",
]
