"""The registry of handlers."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self, TypeAlias

from tasker.contracts.plan import StepPlan, TemplateId
from tasker.errors import HandlerLoadError, HandlerNotFound, MissingCallable
from tasker.registry.discovery import FoundHandler, handlers_in_package, handlers_in_path, refuse_shared_names
from tasker.registry.handler_definition import HandlerDefinition
from tasker.registry.handler_object import is_made_here
from tasker.registry.invocation import ResolvedHandler, resolved
from tasker.registry.known_handlers import HandlerCache
from tasker.registry.resolver_chain import ResolverChain
from tasker.registry.resolvers import (
    ClassLookupResolver,
    EntryPointResolver,
    ExplicitMappingResolver,
    ModuleNamesResolver,
)
from tasker.registry.shared_instance import SharedInstance
from tasker.registry.workflow_handlers import FolderHandlers, WorkflowHandlers, refuse_unclear
from tasker.step_handler.base import StepHandler
from tasker.step_handler.installed_classifier import installed_classifier

__all__ = ["HandlerRegistry", "HandlerSpec", "StepHandler"]

log = logging.getLogger("tasker.registry")

NOT_ONE = (
    "no handler is registered: write it in the handlers.py beside the template's file, "
    "or name where it is: --handlers MODULE_OR_FOLDER, PYTHON_HANDLER_PATH"
)

HandlerSpec: TypeAlias = str | HandlerDefinition | dict[str, Any]
RegistrationListener: TypeAlias = Callable[[str, Any], None]


class HandlerRegistry(SharedInstance):
    """Names and the handlers behind them. Classes are registered, instances are made when a handler is resolved.

    A program may use several; `instance()` is the one that a program shares.
    """

    listeners: ClassVar[list[RegistrationListener]] = []
    """Called with name and handler after each registration."""

    def __init__(self) -> None:
        self._explicit = ExplicitMappingResolver()
        self._aliases = ModuleNamesResolver()
        self._chain = ResolverChain.default().add_resolver(self._explicit).add_resolver(self._aliases)
        self._workflows = WorkflowHandlers()
        self._places: dict[str, str] = {}
        self._known = HandlerCache()
        self._used: set[str] = set()
        self._revision = 0

    @classmethod
    def instance(cls, skip_bootstrap: bool = False) -> Self:
        """The shared registry; at its making it loads `PYTHON_HANDLER_PATH` unless told not to."""
        return cls._shared(partial(cls._loaded, skip_bootstrap))

    @classmethod
    def _loaded(cls, skip_bootstrap: bool) -> Self:
        registry = cls()
        if not skip_bootstrap:
            registry.bootstrap_handlers()
        return registry

    @classmethod
    def reset_instance(cls) -> None:
        """Forget the shared registry; the next `instance()` makes a new one."""
        cls._forget_shared()

    def register(self, name: str, handler_class: type[StepHandler] | Any) -> None:
        """Register a handler class or a decorated function; an earlier one of the name is replaced with a warning."""
        known = self._explicit.get(name)
        if known is not None and known is not handler_class:
            log.warning("handler %r is replaced by %r", name, handler_class)
        self._explicit.register(name, handler_class)
        self._changed()
        for listener in list(self.listeners):
            listener(name, handler_class)

    def unregister(self, name: str) -> bool:
        """Forget a name; False when it was not registered."""
        self._places.pop(name, None)
        known = self._explicit.unregister(name)
        self._used.discard(name)
        self._changed()
        return known

    def resolve(self, handler_spec: HandlerSpec) -> Any | None:
        """A handler for a name, a definition or its mapping; None when nobody knows it."""
        return self._chain.resolve(to_definition(handler_spec))

    def of_step(self, step: StepPlan, template: TemplateId | None = None) -> ResolvedHandler:
        """The handler of a step as the worker calls it; asked before every attempt. Raises as `resolved`."""
        return self._known.of_step(
            step, template, lambda: self.resolved(HandlerDefinition.from_plan(step.handler), step.name, template)
        )

    @property
    def checked(self) -> set[str]:
        """Hashes of plans whose handlers are all there and fit; another set when a handler comes or goes."""
        return self._known.checked

    def resolved(
        self, definition: HandlerDefinition, step: str = "", template: TemplateId | None = None
    ) -> ResolvedHandler:
        """The handler as the worker calls it, made once per callable, method, resolver and initialization.

        Handlers beside the workflow of `template` come first, then those that are registered for all. Raises
        `HandlerNotFound` with suggestions; `step` names the step in it.
        """
        known, beside = self._known, self._workflows.of(template) if template else ()
        find = partial(self._resolve_anew, definition, step, template, beside)
        return known.resolved((beside, _key(definition)), find)

    def _resolve_anew(
        self, definition: HandlerDefinition, step: str, template: TemplateId | None, beside: Sequence[FolderHandlers]
    ) -> ResolvedHandler:
        if len(beside) > 1:
            refuse_unclear(definition.callable, step, template, beside)
        first = beside[0].resolvers if len(beside) == 1 else ()
        if (shared := HandlerRegistry._instance) is not None and shared._chain is not self._chain:
            self._chain.adopt(shared._chain)  # what a module of handlers added when it was loaded
        fresh = partial(self._chain.resolve, definition, definition.initialization, first=first)
        found = self._chain.find(definition, definition.initialization, [*first, *self._chain.resolvers])
        if found is None:
            raise self.not_found(definition.callable, step, template)
        self._note_use(definition.callable)
        return resolved(self._chain.made(found, definition), definition, fresh, made_here=is_made_here(found))

    def not_found(self, callable_name: str, step: str = "", template: TemplateId | None = None) -> HandlerNotFound:
        """The error for a callable that nobody knows, with names that look like it."""
        near = self.suggestions(callable_name, template)
        where = f" (step {step!r})" if step else ""
        refused = f"; {template or 'a template'} may not import it" if self.import_hint([callable_name]) else ""
        hints = [f"did you mean {' or '.join(map(repr, near))}?" if near else self.known_hint(template)]
        return HandlerNotFound(
            f"No resolver could resolve callable {callable_name!r}{where}{refused}",
            missing=[MissingCallable(step, callable_name, near)],
            hint="; ".join([*hints, *self.import_hint([callable_name])]),
        )

    def import_hint(self, callables: Iterable[str]) -> list[str]:
        """What to write where these callables are to be imported by their paths; empty when they may be."""
        lookups = [known for known in self._chain.resolvers if isinstance(known, ClassLookupResolver)]
        refused = [each for each in callables if not all(known.allows(each) for known in lookups)]
        if not refused:
            return []
        patterns = ", ".join(sorted({f'"{each.replace("::", ".").partition(".")[0]}.*"' for each in refused}))
        return [f"to import {' and '.join(refused)} by path, write [worker.handlers] allow = [{patterns}]"]

    def allow_imports(self, allow: Sequence[str]) -> None:
        """Let templates import these paths alone, beside the handlers that are registered or found."""
        self._chain.add_resolver(ClassLookupResolver(allow))
        self._changed()

    def suggestions(self, callable_name: str, template: TemplateId | None = None) -> tuple[str, ...]:
        """Known names that look like this one, at most three; second names of handlers only if no first one does."""
        from difflib import get_close_matches  # for mistakes alone

        for names in (self.names_for(template), self._chain.registered_callables()):
            near = get_close_matches(callable_name, names, n=3)
            if near:
                return tuple(near)
        return ()

    def known_hint(self, template: TemplateId | None = None) -> str:
        """What a template may name, for an error."""
        known = self.names_for(template)
        return f"registered are: {', '.join(known)}" if known else NOT_ONE

    def names_for(self, template: TemplateId | None) -> list[str]:
        """The names of the handlers beside the template's workflow, and of those that are registered, sorted."""
        beside = self._workflows.of(template) if template else ()
        return sorted({*self.list_handlers(), *(name for neighbours in beside for name in neighbours.names)})

    @property
    def resolver_chain(self) -> ResolverChain:
        """The resolvers; add your own here. Those of `instance()` are asked by every registry of the process."""
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

    def bare_folders(self, template: TemplateId) -> list[Path]:
        """The folders of the template's workflow that have no `handlers.py`."""
        return [neighbours.folder for neighbours in self._workflows.of(template) if neighbours.stamp is None]

    def served_handlers(self) -> list[str]:
        """Every name by which steps get a handler here, sorted: registered, beside any workflow, of installed packages
        (see `load_installed`), of other resolvers; second names and import paths once a step has used them."""
        names = {*self.list_handlers(), *self._workflows.names, *self._used}
        for resolver in self._chain.resolvers:
            if isinstance(resolver, EntryPointResolver):
                names |= resolver.handler_names
            elif resolver is not self._aliases:
                names.update(resolver.registered_callables())
        return sorted(names)

    def load_installed(self) -> None:
        """Import the handlers of installed packages, to list them; a package that does not import is logged.

        Raises `ConfigurationError` for an installed error classifier that cannot be used.
        """
        installed_classifier()
        for resolver in self._chain.resolvers:
            if isinstance(resolver, EntryPointResolver):
                resolver.load()
                for name, error in resolver.broken.items():
                    log.warning("handlers_unavailable entry_point=%s: %s", name, error)
        self._revision += 1

    def _note_use(self, name: str) -> None:
        if name not in self._used:
            self._used.add(name)
            self._revision += 1

    @property
    def revision(self) -> int:
        """Grows whenever a handler comes or goes, or is listed for the first time."""
        return self._revision

    def handler_count(self) -> int:
        """How many names are registered."""
        return len(self._explicit.registered_callables())

    def clear(self) -> None:
        """Forget every registration; resolvers stay."""
        self._explicit.clear()
        self._aliases.clear()
        self._workflows.clear()
        self._places.clear()
        self._used.clear()
        self._changed()

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
        refuse_shared_names(handlers)
        for handler in handlers:
            self._add(handler)
        return len(handlers)

    def add_beside(self, folder: Path, templates: Collection[TemplateId]) -> None:
        """Load the `handlers.py` of a folder, if it is new or has changed, for these templates alone.

        Raises `HandlerLoadError`, also for two handlers of one name, and for a template that lies in two folders.
        """
        if self._workflows.add(folder, templates):
            self._changed()

    def _changed(self) -> None:
        self._known = HandlerCache()
        self._revision += 1

    def _add(self, handler: FoundHandler) -> None:
        if self._places.get(handler.key) == handler.place:
            self._explicit.unregister(handler.key)
        self._places[handler.key] = handler.place
        self.register(handler.key, handler.target)
        for alias in handler.aliases:
            self._aliases.offer(alias, handler.target, handler.place)

    def bootstrap_handlers(self) -> int:
        """Load the files and folders of `PYTHON_HANDLER_PATH`; how many handlers there were."""
        return self.add([handler for path in handler_path() for handler in handlers_in_path(path)])

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
