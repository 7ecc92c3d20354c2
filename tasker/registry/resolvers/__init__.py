"""Built-in resolvers."""

from __future__ import annotations

from tasker.registry.resolvers.class_lookup import ClassLookupResolver
from tasker.registry.resolvers.entry_points import EntryPointResolver
from tasker.registry.resolvers.explicit_mapping import ExplicitMappingResolver
from tasker.registry.resolvers.module_names import ModuleNamesResolver

__all__ = ["ClassLookupResolver", "EntryPointResolver", "ExplicitMappingResolver", "ModuleNamesResolver"]
