"""`HandlerRegistry`: handlers by name."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

from tasker.errors import HandlerLoadError, HandlerNotFound, MissingCallable
from tasker.handlers.classifier import installed_classifier
from tasker.handlers.events.registries import SharedInstance
from tasker.handlers.registry.discovery import FoundHandler, handlers_in_package, handlers_in_path, refuse_shared_names
from tasker.handlers.registry.invocation import ResolvedHandler, is_made_here, resolved
from tasker.handlers.registry.resolver import HandlerDefinition
from tasker.handlers.registry.resolver_chain import ResolverChain
from tasker.handlers.registry.resolvers import (
    BuiltinResolver,
    ClassLookupResolver,
    EntryPointResolver,
    ExplicitMappingResolver,
    ModuleNamesResolver,
)
from tasker.handlers.registry.resource_needs import ResourceNeeds
from tasker.handlers.registry.workflow_handlers import FolderHandlers, WorkflowHandlers, refuse_unclear
from tasker.handlers.step_handler import StepHandler
from tasker.template.builtin import BUILTIN, plugin_hint, plugin_of
from tasker.template.plan import HandlerRef, StepPlan, TemplateId

if TYPE_CHECKING:
    from tasker.handlers.builtin import BuiltinHandler

__all__ = ["HandlerRegistry", "HandlerSpec", "StepHandler"]

REMEMBERED_STEPS = 10_000


class HandlerCache:
    """Resolved handlers as the worker calls them.

    Each change of a registry creates a new cache: results that another thread computes meanwhile go into the old one
    and are discarded with it.
    """

    def __init__(self) -> None:
        self._resolved: dict[Hashable, ResolvedHandler] = {}
        self._of_steps: dict[tuple[TemplateId | None, str], tuple[HandlerRef, ResolvedHandler]] = {}
        self.checked: set[str] = set()
        """Hashes of plans whose handlers all exist and fit."""

    def of_step(
        self, step: StepPlan, template: TemplateId | None, find: Callable[[], ResolvedHandler]
    ) -> ResolvedHandler:
        """Return the handler of a step; resolve it if it is unknown or if the plan names another one."""
        reference, handler = self._of_steps.get((template, step.name), (None, None))
        if handler is None or reference is not step.handler:
            handler = find()
            if len(self._of_steps) >= REMEMBERED_STEPS:
                self._of_steps.clear()
            self._of_steps[template, step.name] = (step.handler, handler)
        return handler

    def resolved(self, key: Hashable, find: Callable[[], ResolvedHandler]) -> ResolvedHandler:
        """Return the handler of this key; two threads that resolve it at the same time both get the first result."""
        handler = self._resolved.get(key)
        return self._resolved.setdefault(key, find()) if handler is None else handler


log = logging.getLogger("tasker.registry")

NOT_ONE = (
    "no handler is registered: write it in the handlers.py beside the template's file, "
    "or name where it is: --handlers MODULE_OR_FOLDER, PYTHON_HANDLER_PATH"
)

HandlerSpec: TypeAlias = str | HandlerDefinition | dict[str, Any]
RegistrationListener: TypeAlias = Callable[[str, Any], None]


class HandlerRegistry(SharedInstance):
    """Registry of handlers by name. Classes are registered; an instance is made when a handler is resolved.

    A program may use several registries; `instance()` returns the one that it shares.
    """

    listeners: ClassVar[list[RegistrationListener]] = []
    """Callbacks that get the name and the handler after each registration."""

    def __init__(self) -> None:
        self._explicit = ExplicitMappingResolver()
        self._aliases = ModuleNamesResolver()
        self._chain = ResolverChain.default().add_resolver(self._explicit).add_resolver(self._aliases)
        self._workflows = WorkflowHandlers()
        self._places: dict[str, str] = {}
        self._known = HandlerCache()
        self._used: set[str] = set()
        self._needs = ResourceNeeds()
        self._revision = 0

    @classmethod
    def instance(cls, skip_bootstrap: bool = False) -> Self:
        """Return the shared registry; its creation loads `PYTHON_HANDLER_PATH` unless `skip_bootstrap` is true."""
        return cls._shared(partial(cls._loaded, skip_bootstrap))

    @classmethod
    def _loaded(cls, skip_bootstrap: bool) -> Self:
        registry = cls()
        if not skip_bootstrap:
            registry.bootstrap_handlers()
        return registry

    @classmethod
    def reset_instance(cls) -> None:
        """Discard the shared registry; the next `instance()` creates a new one."""
        cls._forget_shared()

    def register(self, name: str, handler_class: type[StepHandler] | Any) -> None:
        """Register a handler class or a decorated function; replacing an earlier one of the name logs a warning."""
        known = self._explicit.get(name)
        if known is not None and known is not handler_class:
            log.warning("handler %r is replaced by %r", name, handler_class)
        self._explicit.register(name, handler_class)
        self._changed()
        for listener in list(self.listeners):
            listener(name, handler_class)

    def unregister(self, name: str) -> bool:
        """Remove a name; return False if it was not registered."""
        self._places.pop(name, None)
        known = self._explicit.unregister(name)
        self._used.discard(name)
        self._changed()
        return known

    def resolve(self, handler_spec: HandlerSpec) -> Any | None:
        """Return the handler for a name, a definition or a definition's mapping; None if no resolver knows it."""
        return self._chain.resolve(to_definition(handler_spec))

    def of_step(self, step: StepPlan, template: TemplateId | None = None) -> ResolvedHandler:
        """Return the handler of a step as the worker calls it; called before every attempt.

        Raises the errors of `resolved`.
        """
        return self._known.of_step(step, template, partial(self._of_step, step, template))

    def _of_step(self, step: StepPlan, template: TemplateId | None) -> ResolvedHandler:
        known = len(self._needs.refused)
        try:
            self._needs.require_for_step(step)
        finally:
            self._revision += len(self._needs.refused) - known
        return self.resolved(HandlerDefinition.from_plan(step.handler), step.name, template)

    @property
    def checked(self) -> set[str]:
        """Hashes of plans whose handlers all exist and fit; a new set once a handler is added or removed."""
        return self._known.checked

    def resolved(
        self, definition: HandlerDefinition, step: str = "", template: TemplateId | None = None
    ) -> ResolvedHandler:
        """Return the handler as the worker calls it, made once per callable, method, resolver and initialization.

        Handlers beside the workflow of `template` take precedence over those registered for all templates. Raises
        `HandlerNotFound` with suggestions; `step` is the name of the step in its message.
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
            self._chain.adopt(shared._chain)  # resolvers that a handler module added while it was loaded
        fresh = partial(self._chain.resolve, definition, definition.initialization, first=first)
        target = self._chain.find(definition, definition.initialization, [*first, *self._chain.resolvers])
        if target is None:
            raise self.not_found(definition.callable, step, template)
        self._needs.require(definition.callable, step, target)
        self._note_use(definition.callable)
        return resolved(self._chain.made(target, definition), definition, fresh, made_here=is_made_here(target))

    def provide_resources(self, names: Iterable[str]) -> None:
        """Set the resources of this process: handlers that use others are not resolved."""
        self._needs = ResourceNeeds(names, self._needs.steps)
        self._changed()

    def provide_steps(self, handlers: Mapping[str, type[BuiltinHandler]]) -> None:
        """Set the built-in steps of the enabled plugins, by name."""
        if handlers:
            self._chain.add_resolver(BuiltinResolver(handlers))
            steps = {**BUILTIN, **{name: handler.step for name, handler in handlers.items()}}
            self._needs = ResourceNeeds(self._needs.names, steps)
            self._changed()

    def _lacking(self) -> dict[str, list[str]]:
        targets = {name: self._explicit.get(name) for name in self._explicit.registered_callables()}
        return self._needs.lacking({**targets, **self._workflows.targets})

    def lacking(self) -> list[str]:
        """Return what handlers here and steps that were refused here lack: `handler resource`, sorted."""
        declared = {f"{name} {resource}" for name, missing in self._lacking().items() for resource in missing}
        return sorted(declared | self._needs.refused)

    def not_found(self, callable_name: str, step: str = "", template: TemplateId | None = None) -> HandlerNotFound:
        """Return the error for a callable that no resolver knows, with similar names as suggestions."""
        near = self.suggestions(callable_name, template)
        where = f" (step {step!r})" if step else ""
        refused = f"; {template or 'a template'} may not import it" if self.import_hint([callable_name]) else ""
        meant = f"did you mean {' or '.join(map(repr, near))}?" if near else self.known_hint(template)
        hints = [plugin_hint(callable_name) or meant]
        return HandlerNotFound(
            f"No resolver could resolve callable {callable_name!r}{where}{refused}",
            missing=[MissingCallable(step, callable_name, near)],
            hint="; ".join([*hints, *self.import_hint([callable_name])]),
        )

    def import_hint(self, callables: Iterable[str]) -> list[str]:
        """Return the setting that allows these callables to be imported by path; empty if they are allowed already."""
        lookups = [known for known in self._chain.resolvers if isinstance(known, ClassLookupResolver)]
        paths = [name for name in callables if plugin_of(name) is None]
        refused = [name for name in paths if not all(known.allows(name) for known in lookups)]
        if not refused:
            return []
        patterns = ", ".join(sorted({f'"{name.replace("::", ".").partition(".")[0]}.*"' for name in refused}))
        return [f"to import {' and '.join(refused)} by path, write [worker.handlers] allow = [{patterns}]"]

    def allow_imports(self, allow: Sequence[str]) -> None:
        """Restrict templates to these import paths, in addition to registered and discovered handlers."""
        self._chain.add_resolver(ClassLookupResolver(allow))
        self._changed()

    def suggestions(self, callable_name: str, template: TemplateId | None = None) -> tuple[str, ...]:
        """Return at most three known names that are similar to this one; aliases only if no primary name is similar."""
        from difflib import get_close_matches  # needed only for errors

        for names in (self.names_for(template), self._chain.registered_callables()):
            near = get_close_matches(callable_name, names, n=3)
            if near:
                return tuple(near)
        return ()

    def known_hint(self, template: TemplateId | None = None) -> str:
        """Return the names that a template may use, for an error's hint."""
        known = self.names_for(template)
        return f"registered are: {', '.join(known)}" if known else NOT_ONE

    def names_for(self, template: TemplateId | None) -> list[str]:
        """Return the sorted names of registered handlers and of those beside the template's workflow."""
        beside = self._workflows.of(template) if template else ()
        return sorted({*self.list_handlers(), *(name for neighbours in beside for name in neighbours.names)})

    @property
    def resolver_chain(self) -> ResolverChain:
        """Chain of resolvers; add your own here.

        Every registry of the process also asks the resolvers of `instance()`.
        """
        return self._chain

    def get_handler_class(self, name: str) -> type[StepHandler] | None:
        """Return the class registered under the name, or None."""
        entry = self._explicit.get(name)
        cls: type[StepHandler] | None = getattr(entry, "_handler_class", entry)
        return cls

    def is_registered(self, name: str) -> bool:
        """Return True if the name is registered."""
        return self._explicit.get(name) is not None

    def list_handlers(self) -> list[str]:
        """Return the registered names, sorted."""
        return sorted(self._explicit.registered_callables())

    def bare_folders(self, template: TemplateId) -> list[Path]:
        """Return the folders of the template's workflow that have no `handlers.py`."""
        return [neighbours.folder for neighbours in self._workflows.of(template) if neighbours.stamp is None]

    def served_handlers(self) -> list[str]:
        """Return every name for which steps get a handler here, sorted.

        These are the registered names, those beside any workflow, those of installed packages (see `load_installed`)
        and of other resolvers. Aliases and import paths are included once a step has used them.
        """
        names = {*self.list_handlers(), *self._workflows.names, *self._used}
        for resolver in self._chain.resolvers:
            if isinstance(resolver, EntryPointResolver):
                names |= resolver.handler_names
            elif resolver is not self._aliases:
                names.update(resolver.registered_callables())
        return sorted(names - self._lacking().keys())

    def load_installed(self) -> None:
        """Import the handlers of installed packages so that they can be listed.

        A package that fails to import is logged. Raises `ConfigurationError` for an installed error classifier that
        cannot be used.
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
        """Counter that increases when a handler is added, removed, or listed for the first time."""
        return self._revision

    def handler_count(self) -> int:
        """Return the number of registered names."""
        return len(self._explicit.registered_callables())

    def clear(self) -> None:
        """Remove every registration; the resolvers stay."""
        self._explicit.clear()
        self._aliases.clear()
        self._workflows.clear()
        self._places.clear()
        self._used.clear()
        self._changed()

    def discover_handlers(self, package_name: str, base_class: type[StepHandler] | None = None) -> int:
        """Register every handler of a package and its subpackages; return their number.

        Raises `HandlerLoadError` for a module that fails to import, and for a name that two handlers use.
        """
        return self.add(handlers_in_package(package_name, base_class or StepHandler))

    def discover_path(self, path: Path) -> int:
        """Register every handler of a Python file or a folder; return their number."""
        return self.add(handlers_in_path(path))

    def add(self, handlers: list[FoundHandler]) -> int:
        """Register discovered handlers; return their number.

        Raises `HandlerLoadError` if two of them have the same name.
        """
        refuse_shared_names(handlers)
        for handler in handlers:
            self._add(handler)
        return len(handlers)

    def add_beside(self, folder: Path, templates: Collection[TemplateId]) -> None:
        """Load the `handlers.py` of a folder, if it is new or has changed, for these templates only.

        Raises `HandlerLoadError`, also for two handlers of one name and for a template that exists in two folders.
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
        """Load the files and folders of `PYTHON_HANDLER_PATH`; return the number of handlers."""
        return self.add([handler for path in handler_path() for handler in handlers_in_path(path)])


def handler_path() -> list[Path]:
    """Return the entries of `PYTHON_HANDLER_PATH`. Raises `HandlerLoadError` for one that does not exist."""
    entries = [Path(item) for item in os.environ.get("PYTHON_HANDLER_PATH", "").split(os.pathsep) if item]
    for entry in entries:
        if not entry.exists():
            raise HandlerLoadError(f"PYTHON_HANDLER_PATH names {entry}, which does not exist")
    return entries


def to_definition(spec: HandlerSpec) -> HandlerDefinition:
    if isinstance(spec, HandlerDefinition):
        return spec
    return HandlerDefinition.from_callable(spec) if isinstance(spec, str) else HandlerDefinition.from_dict(spec)


def _key(definition: HandlerDefinition) -> str:
    parts = (definition.callable, definition.method, definition.resolver, definition.initialization)
    return json.dumps(parts, sort_keys=True, default=repr)
