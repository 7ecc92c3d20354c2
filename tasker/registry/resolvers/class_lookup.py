"""Dotted paths to a class or function."""

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

    `allow` are the paths that may be imported; `package.*` is everything below a package. Nothing else is even looked
    for, since that would run its package.
    """

    def __init__(self, allow: Sequence[str] = EVERYTHING) -> None:
        self._allow = tuple(allow)

    @property
    def name(self) -> str:
        """`class_lookup`."""
        return "class_lookup"

    @property
    def priority(self) -> int:
        """Last."""
        return 100

    def can_resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> bool:
        """True for a callable with `.` or `::`, or with an upper-case first letter."""
        name = definition.callable
        return "::" in name or "." in name or name[:1].isupper()

    def resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> Any | None:
        """The object at the path, or None. Raises `HandlerLoadError` when its module is there and fails to import."""
        parts = _parts(definition.callable)
        if not parts or not self.allows(definition.callable):
            return None
        for length in range(len(parts) - 1, 0, -1):
            module = _module(".".join(parts[:length]))
            if module is not None:
                return _attribute(module, parts[length:])
        return None

    def allows(self, callable_name: str) -> bool:
        """True for what may be imported, and for what is no path."""
        parts = _parts(callable_name)
        return not parts or any(fnmatchcase(".".join(parts), pattern) for pattern in self._allow)


def _parts(callable_name: str) -> list[str]:
    """The names of a path with more than one; empty for anything else."""
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
