"""Resolver for dotted paths to a class or function."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from fnmatch import fnmatchcase
from types import ModuleType
from typing import Any

from tasker.registry.base_resolver import BaseResolver
from tasker.registry.handler_definition import HandlerDefinition
from tasker.registry.module_loading import import_module

EVERYTHING = ("*",)


class ClassLookupResolver(BaseResolver):
    """Imports `package.module.Class` or `package.module.function`; `::` is read as a dot.

    `allow` lists the paths that may be imported; `package.*` covers everything below a package. Other paths are not
    even looked up, since that would run their package.
    """

    def __init__(self, allow: Sequence[str] = EVERYTHING) -> None:
        self._allow = tuple(allow)

    @property
    def name(self) -> str:
        """Name of the resolver: `class_lookup`."""
        return "class_lookup"

    @property
    def priority(self) -> int:
        """Position in the chain: last of the built-in resolvers."""
        return 100

    def can_resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> bool:
        """Return True for a callable with `.` or `::`, or with an upper-case first letter."""
        name = definition.callable
        return "::" in name or "." in name or name[:1].isupper()

    def resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> Any | None:
        """Return the object at the path, or None. Raises `HandlerLoadError` if an existing module fails to import."""
        parts = _parts(definition.callable)
        if not parts or not self.allows(definition.callable):
            return None
        for length in range(len(parts) - 1, 0, -1):
            module = _module(".".join(parts[:length]))
            if module is not None:
                return _attribute(module, parts[length:])
        return None

    def allows(self, callable_name: str) -> bool:
        """Return True for a path that may be imported, and for a callable that is not a path."""
        parts = _parts(callable_name)
        return not parts or any(fnmatchcase(".".join(parts), pattern) for pattern in self._allow)


def _parts(callable_name: str) -> list[str]:
    """Return the names of a path with at least two; empty for anything else."""
    parts = callable_name.replace("::", ".").split(".")
    return parts if len(parts) > 1 and all(part.isidentifier() for part in parts) else []


def _module(name: str) -> ModuleType | None:
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
    return import_module(name) if spec else None


def _attribute(found: Any, path: list[str]) -> Any | None:
    for part in path:
        found = getattr(found, part, None)
    return found
