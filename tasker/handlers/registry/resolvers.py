"""Resolvers by mapping, module, entry point and dotted path."""

from __future__ import annotations

import importlib.util
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from importlib.metadata import EntryPoint
from types import MappingProxyType, ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

from tasker.errors import HandlerLoadError
from tasker.handlers.registry.discovery import FoundHandler, handlers_in_package, import_module, loading
from tasker.handlers.registry.resolver import BaseResolver, HandlerDefinition
from tasker.installed import offered
from tasker.template.builtin import BUILTIN

if TYPE_CHECKING:
    from tasker.handlers.builtin import BuiltinHandler

__all__ = [
    "BuiltinResolver",
    "ClassLookupResolver",
    "EntryPointResolver",
    "ExplicitMappingResolver",
    "ModuleNamesResolver",
]

EVERYTHING = ("*",)
NONE: Mapping[str, Any] = MappingProxyType({})


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


def _attribute(value: Any, path: list[str]) -> Any | None:
    for part in path:
        value = getattr(value, part, None)
    return value


GROUP = "tasker.handlers"

Claim: TypeAlias = tuple[EntryPoint, Any]
"""An entry point and the handler found in its module; None for an entry point that names the handler itself."""


class EntryPointResolver(BaseResolver):
    """Finds handlers that packages declare, and imports a package when it is needed.

        [project.entry-points."tasker.handlers"]
        charge_card = "shop.payment:ChargeCard"     # one handler, by name
        shop = "shop.handlers"                       # a module or package: every handler in it

    If two packages declare one name, `HandlerLoadError` names both.
    """

    @property
    def name(self) -> str:
        """Name of the resolver: `entry_points`."""
        return "entry_points"

    @property
    def priority(self) -> int:
        """Position in the chain: after explicit registrations, before class paths."""
        return 90

    def can_resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> bool:
        """Return True if a package declares the name, or declares modules that may contain it."""
        return bool(self._single or self._modules)

    def resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> Any | None:
        """Return the handler, or None. Raises `HandlerLoadError` for a package that fails to import."""
        name = definition.callable
        if name in self._single:
            return _load(_only(name, self._single[name])[0])
        if claims := self._in_modules.get(name, []):
            return _only(name, claims)[1]
        for error in self.broken.values():
            raise error
        return None

    def registered_callables(self) -> list[str]:
        """Return the declared names; names inside declared modules are included once the modules are loaded."""
        inside = self.__dict__.get("_in_modules", {})
        return sorted({*self._single, *inside})

    def load(self) -> None:
        """Import the declared modules, so that the names of their handlers are known."""
        self._in_modules  # noqa: B018    # reading the cached property imports them

    @property
    def handler_names(self) -> set[str]:
        """Declared names, and names (without aliases) of the handlers in loaded modules."""
        modules = self.__dict__.get("_handlers", {})
        return {*self._single, *(handler.key for handlers in modules.values() for handler in handlers)}

    @cached_property
    def broken(self) -> dict[str, HandlerLoadError]:
        """Errors of declared modules that failed to import, by name of the entry point."""
        return {}

    @cached_property
    def _declared(self) -> tuple[EntryPoint, ...]:
        return offered(GROUP)

    @cached_property
    def _single(self) -> dict[str, list[Claim]]:
        claims: dict[str, list[Claim]] = defaultdict(list)
        for declared in self._declared:
            if declared.attr:
                claims[declared.name].append((declared, None))
        return dict(claims)

    @cached_property
    def _modules(self) -> list[EntryPoint]:
        return [declared for declared in self._declared if not declared.attr]

    @cached_property
    def _handlers(self) -> dict[EntryPoint, list[FoundHandler]]:
        handlers: dict[EntryPoint, list[FoundHandler]] = {}
        for declared in self._modules:
            try:
                handlers[declared] = handlers_in_package(declared.module)
            except HandlerLoadError as error:
                self.broken[declared.name] = error
        return handlers

    @cached_property
    def _in_modules(self) -> dict[str, list[Claim]]:
        claims: dict[str, list[Claim]] = defaultdict(list)
        for declared, handlers in self._handlers.items():
            for handler in handlers:
                for name in handler.names:
                    claims[name].append((declared, handler.target))
        return dict(claims)


def _load(declared: EntryPoint) -> Any:
    with loading(f"the entry point {declared.name!r} ({declared.value})"):
        return declared.load()


def _only(name: str, claims: list[Claim]) -> Claim:
    if len({id(target) if target else entry.value for entry, target in claims}) > 1:
        owners = " and ".join(sorted(f"{entry.value} ({_package(entry)})" for entry, _ in claims))
        raise HandlerLoadError(
            f"two packages claim the handler {name!r}: {owners}",
            hint=f"register the one you want: registry.register({name!r}, ...), or give its class path as the callable",
        )
    return claims[0]


def _package(declared: EntryPoint) -> str:
    return declared.dist.name if declared.dist else "unknown package"


class BuiltinResolver(BaseResolver):
    """Finds the handlers of built-in steps: those of the core, imported with the first step that uses one, and those
    of the enabled plugins, `provided` by name."""

    def __init__(self, provided: Mapping[str, type[BuiltinHandler]] = NONE) -> None:
        self._provided = provided

    @property
    def name(self) -> str:
        """Name of the resolver: `builtin`."""
        return "builtin"

    @property
    def priority(self) -> int:
        """Position in the chain: after explicit registrations, so that a test may replace a built-in step."""
        return 80

    def can_resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> bool:
        """Return True for the name of a built-in step."""
        return definition.callable in self.registered_callables()

    def resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> Any | None:
        """Return the class of the handler."""
        from tasker.handlers.builtin import handler_of

        return handler_of(definition.callable) or self._provided.get(definition.callable)

    def registered_callables(self) -> list[str]:
        """Return the names of the built-in steps of the core and of the enabled plugins."""
        return [*(name for name, step in BUILTIN.items() if step.plugin is None), *self._provided]


class ExplicitMappingResolver(BaseResolver):
    """Looks up the exact callable in a dictionary."""

    def __init__(self, name: str = "explicit_mapping") -> None:
        self._name = name
        self._handlers: dict[str, Any] = {}

    @property
    def name(self) -> str:
        """Name given to the constructor."""
        return self._name

    @property
    def priority(self) -> int:
        """Position in the chain: first."""
        return 10

    def can_resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> bool:
        """Return True if the callable is registered."""
        return definition.callable in self._handlers

    def resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> Any | None:
        """Return the registered class, function or object, or None."""
        return self._handlers.get(definition.callable)

    def register(self, key: str, handler: Any) -> None:
        """Register a handler; an earlier registration of the name is replaced."""
        self._handlers[key] = handler

    def unregister(self, key: str) -> bool:
        """Remove a name; return False if it was not registered."""
        return self._handlers.pop(key, None) is not None

    def get(self, key: str) -> Any | None:
        """Return the class, function or object registered under the name, or None."""
        return self._handlers.get(key)

    def clear(self) -> None:
        """Remove all registrations."""
        self._handlers.clear()

    def registered_callables(self) -> list[str]:
        """Return the names in the order of registration."""
        return list(self._handlers)


log = logging.getLogger("tasker.registry")


class ModuleNamesResolver(ExplicitMappingResolver):
    """Dictionary of aliases, after the explicit mapping. An alias that two handlers share resolves to neither."""

    def __init__(self, name: str = "module_names") -> None:
        super().__init__(name)
        self._places: dict[str, list[str]] = {}

    @property
    def priority(self) -> int:
        """Position in the chain: after the explicit mapping."""
        return 20

    def offer(self, key: str, handler: Any, place: str) -> None:
        """Register the handler at `place` (file and name); a handler from an earlier load of that file is replaced.

        An alias that a handler of another place has too is dropped; a warning is logged when a template uses it.
        """
        places = self._places.setdefault(key, [])
        if place not in places:
            places.append(place)
        if len(places) > 1:
            self.unregister(key)
        else:
            self.register(key, handler)

    def can_resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> bool:
        """Return True if the alias was offered."""
        return definition.callable in self._places

    def resolve(self, definition: HandlerDefinition, config: dict[str, Any] | None = None) -> Any | None:
        """Return the handler of the alias; None, with a warning, if several handlers share it."""
        places = self._places.get(definition.callable, [])
        if len(places) > 1:
            shared = "%r names several handlers and leads to none of them (%s): call each by its handler_name"
            log.warning(shared, definition.callable, ", ".join(places))
        return super().resolve(definition, config)

    def clear(self) -> None:
        """Remove all aliases."""
        super().clear()
        self._places.clear()
