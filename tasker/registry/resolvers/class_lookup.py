"""Dotted paths to a class or function."""

from __future__ import annotations

import importlib.util
from types import ModuleType
from typing import Any

from tasker.registry.base_resolver import BaseResolver
from tasker.registry.handler_definition import HandlerDefinition
from tasker.registry.module_loading import import_module


class ClassLookupResolver(BaseResolver):
    """Imports `package.module.Class` or `package.module.function`; `::` is read as a dot (D-39, D-40)."""

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
        parts = definition.callable.replace("::", ".").split(".")
        if not all(part.isidentifier() for part in parts):
            return None
        for length in range(len(parts) - 1, 0, -1):
            module = _module(".".join(parts[:length]))
            if module is not None:
                return _attribute(module, parts[length:])
        return None


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
