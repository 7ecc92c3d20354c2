"""Built-in resolvers."""

from __future__ import annotations

from tasker_core.registry.resolvers.class_lookup import ClassLookupResolver
from tasker_core.registry.resolvers.explicit_mapping import ExplicitMappingResolver

__all__ = ["ClassLookupResolver", "ExplicitMappingResolver"]
