"""Resolver for handlers of installed packages, in the entry-point group `tasker.handlers`."""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from importlib.metadata import EntryPoint
from typing import Any, TypeAlias

from tasker.errors import HandlerLoadError
from tasker.installed import offered
from tasker.registry.base_resolver import BaseResolver
from tasker.registry.discovery import FoundHandler, handlers_in_package
from tasker.registry.handler_definition import HandlerDefinition
from tasker.registry.module_loading import loading

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
        return {*self._single, *(handler.key for found in modules.values() for handler in found)}

    @cached_property
    def broken(self) -> dict[str, HandlerLoadError]:
        """Errors of declared modules that failed to import, by name of the entry point."""
        return {}

    @cached_property
    def _declared(self) -> tuple[EntryPoint, ...]:
        return offered(GROUP)

    @cached_property
    def _single(self) -> dict[str, list[Claim]]:
        found: dict[str, list[Claim]] = defaultdict(list)
        for declared in self._declared:
            if declared.attr:
                found[declared.name].append((declared, None))
        return dict(found)

    @cached_property
    def _modules(self) -> list[EntryPoint]:
        return [declared for declared in self._declared if not declared.attr]

    @cached_property
    def _handlers(self) -> dict[EntryPoint, list[FoundHandler]]:
        found: dict[EntryPoint, list[FoundHandler]] = {}
        for declared in self._modules:
            try:
                found[declared] = handlers_in_package(declared.module)
            except HandlerLoadError as error:
                self.broken[declared.name] = error
        return found

    @cached_property
    def _in_modules(self) -> dict[str, list[Claim]]:
        found: dict[str, list[Claim]] = defaultdict(list)
        for declared, handlers in self._handlers.items():
            for handler in handlers:
                for name in handler.names:
                    found[name].append((declared, handler.target))
        return dict(found)


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
