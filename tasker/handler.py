"""The registry of handlers."""

from __future__ import annotations

import difflib
import json
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, TypeAlias

from tasker.errors import HandlerLoadError, HandlerNotFound, MissingCallable
from tasker.registry.discovery import FoundHandler, handlers_in_package, handlers_in_path
from tasker.registry.handler_definition import HandlerDefinition
from tasker.registry.invocation import ResolvedHandler, resolved
from tasker.registry.resolver_chain import ResolverChain
from tasker.registry.resolvers import ExplicitMappingResolver, ModuleNamesResolver
from tasker.step_handler.base import StepHandler

__all__ = ["HandlerRegistry", "HandlerSpec", "StepHandler"]

log = logging.getLogger("tasker.registry")

HandlerSpec: TypeAlias = str | HandlerDefinition | dict[str, Any]

RegistrationListener: TypeAlias = Callable[[str, Any], None]


class HandlerRegistry:
    """Names and the handlers behind them. Classes are registered, instances are made when a handler is resolved.

    A program may use several; `instance()` is the one that a program shares.
    """

    listeners: ClassVar[list[RegistrationListener]] = []
    """Called with name and handler after each registration."""

    _instance: ClassVar[HandlerRegistry | None] = None
    _lock: ClassVar[threading.Lock] = threading.Lock()

    def __init__(self) -> None:
        self._explicit = ExplicitMappingResolver()
        self._aliases = ModuleNamesResolver()
        self._chain = ResolverChain.default().add_resolver(self._explicit).add_resolver(self._aliases)
        self._places: dict[str, str] = {}
        self._resolved: dict[str, ResolvedHandler] = {}

    @classmethod
    def instance(cls, skip_bootstrap: bool = False) -> HandlerRegistry:
        """The shared registry; at its making it loads `PYTHON_HANDLER_PATH` unless told not to."""
        with cls._lock:
            if cls._instance is None:
                registry = cls()
                if not skip_bootstrap:
                    registry.bootstrap_handlers()
                cls._instance = registry
            return cls._instance

    @classmethod
    def reset_instance(cls) -> None:
        """Forget the shared registry; the next `instance()` makes a new one (D-173)."""
        with cls._lock:
            cls._instance = None

    def register(self, name: str, handler_class: type[StepHandler] | Any) -> None:
        """Register a handler class or a decorated function; an earlier one of the name is replaced with a warning."""
        known = self._explicit.get(name)
        if known is not None and known is not handler_class:
            log.warning("handler %r is replaced by %r", name, handler_class)
        self._explicit.register(name, handler_class)
        self._resolved.clear()
        for listener in list(self.listeners):
            listener(name, handler_class)

    def unregister(self, name: str) -> bool:
        """Forget a name; False when it was not registered."""
        self._resolved.clear()
        self._places.pop(name, None)
        return self._explicit.unregister(name)

    def resolve(self, handler_spec: HandlerSpec) -> Any | None:
        """A handler for a name, a definition or its mapping; None when nobody knows it."""
        return self._chain.resolve(to_definition(handler_spec))

    def resolved(self, definition: HandlerDefinition, step: str = "") -> ResolvedHandler:
        """The handler as the worker calls it, made once per callable, method, resolver and initialization.

        Raises `HandlerNotFound` with suggestions; `step` names the step in it.
        """
        key = _key(definition)
        found = self._resolved.get(key)
        if found is None:
            found = self._resolved[key] = self._resolve_anew(definition, step)
        return found

    def _resolve_anew(self, definition: HandlerDefinition, step: str) -> ResolvedHandler:
        def fresh() -> Any:
            return self._chain.resolve(definition, definition.initialization)

        handler = fresh()
        if handler is None:
            raise self.not_found(definition.callable, step)
        return resolved(handler, definition, fresh)

    def not_found(self, callable_name: str, step: str = "") -> HandlerNotFound:
        """The error for a callable that nobody knows, with names that look like it."""
        near = self.suggestions(callable_name)
        return HandlerNotFound(
            f"No resolver could resolve callable {callable_name!r}" + (f" (step {step!r})" if step else ""),
            missing=[MissingCallable(step, callable_name, near)],
            hint=f"did you mean {' or '.join(map(repr, near))}?" if near else self._known_hint(),
        )

    def suggestions(self, callable_name: str) -> tuple[str, ...]:
        """Known names that look like this one, at most three; second names of handlers only if no first one does."""
        for names in (self.list_handlers(), self._chain.registered_callables()):
            near = difflib.get_close_matches(callable_name, names, n=3)
            if near:
                return tuple(near)
        return ()

    def _known_hint(self) -> str:
        known = self.list_handlers()
        return f"registered are: {', '.join(known)}" if known else "no handler is registered"

    @property
    def resolver_chain(self) -> ResolverChain:
        """The resolvers; add your own here."""
        return self._chain

    def get_handler_class(self, name: str) -> type[StepHandler] | None:
        """The class registered under the name."""
        found = self._explicit.get(name)
        cls: type[StepHandler] | None = getattr(found, "_handler_class", found)
        return cls

    def is_registered(self, name: str) -> bool:
        """True when the name is registered."""
        return self._explicit.get(name) is not None

    def list_handlers(self) -> list[str]:
        """The registered names, sorted."""
        return sorted(self._explicit.registered_callables())

    def handler_count(self) -> int:
        """How many names are registered."""
        return len(self._explicit.registered_callables())

    def clear(self) -> None:
        """Forget every registration; resolvers stay."""
        self._explicit.clear()
        self._aliases.clear()
        self._places.clear()
        self._resolved.clear()

    def discover_handlers(self, package_name: str, base_class: type[StepHandler] | None = None) -> int:
        """Register every handler in a package and below; how many there were.

        Raises `HandlerLoadError` for a module that does not import, and for a name that two handlers claim.
        """
        return self.add(handlers_in_package(package_name, base_class or StepHandler))

    def discover_path(self, path: Path) -> int:
        """The same for a Python file or a folder."""
        return self.add(handlers_in_path(path))

    def add(self, handlers: list[FoundHandler]) -> int:
        """Register what was found; how many there were. Two places for one name in this list are an error."""
        places: dict[str, str] = {}
        for handler in handlers:
            other = places.setdefault(handler.key, handler.place)
            if other != handler.place:
                raise HandlerLoadError(
                    f"two handlers claim the name {handler.key!r}: {other} and {handler.place}",
                    hint="give one of them another handler_name",
                )
        for handler in handlers:
            self._add(handler)
        return len(handlers)

    def _add(self, handler: FoundHandler) -> None:
        if self._places.get(handler.key) == handler.place:
            self._explicit.unregister(handler.key)
        self._places[handler.key] = handler.place
        self.register(handler.key, handler.target)
        for alias in handler.aliases:
            self._aliases.offer(alias, handler.target)

    def bootstrap_handlers(self) -> int:
        """Load the files and folders of `PYTHON_HANDLER_PATH`; how many handlers there were."""
        return sum(self.discover_path(path) for path in handler_path())

    def template_discovery_info(self) -> dict[str, Any]:
        """Where templates lie, which handlers they name, and which of those are known."""
        from tasker.template_discovery import HandlerDiscovery, TemplatePath

        folder = TemplatePath.find_template_config_directory()
        wanted = HandlerDiscovery.discover_all_handlers(folder) if folder else []
        return {
            "template_path": str(folder) if folder else None,
            "template_count": len(TemplatePath.discover_template_files(folder)) if folder else 0,
            "handlers": wanted,
            "registered": [name for name in wanted if self.is_registered(name)],
        }


def handler_path() -> list[Path]:
    """The entries of `PYTHON_HANDLER_PATH`. Raises `HandlerLoadError` for one that does not exist."""
    entries = [Path(item) for item in os.environ.get("PYTHON_HANDLER_PATH", "").split(os.pathsep) if item]
    for entry in entries:
        if not entry.exists():
            raise HandlerLoadError(f"PYTHON_HANDLER_PATH names {entry}, which does not exist")
    return entries


def to_definition(spec: HandlerSpec) -> HandlerDefinition:
    """A definition from any of its forms."""
    if isinstance(spec, HandlerDefinition):
        return spec
    return HandlerDefinition.from_callable(spec) if isinstance(spec, str) else HandlerDefinition.from_dict(spec)


def _key(definition: HandlerDefinition) -> str:
    parts = (definition.callable, definition.method, definition.resolver, definition.initialization)
    return json.dumps(parts, sort_keys=True, default=repr)
