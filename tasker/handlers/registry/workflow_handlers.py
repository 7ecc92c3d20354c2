"""Handlers beside workflows: each belongs to the templates of its folder only."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any, Self

from tasker.errors import HandlerLoadError, HandlerNotFound, MissingCallable
from tasker.handlers.registry.discovery import FoundHandler, handlers_in_path, refuse_shared_names
from tasker.handlers.registry.resolver import BaseResolver
from tasker.handlers.registry.resolvers import ExplicitMappingResolver, ModuleNamesResolver
from tasker.template.plan import TemplateId

HANDLERS_FILE = "handlers.py"


class FolderHandlers:
    """Handlers in the `handlers.py` of one folder (possibly none), by all their names."""

    def __init__(self, folder: Path, handlers: Sequence[FoundHandler], stamp: tuple[int, int] | None) -> None:
        self.folder, self.stamp = folder, stamp
        self._explicit, self._aliases = ExplicitMappingResolver(), ModuleNamesResolver()
        for handler in handlers:
            self._explicit.register(handler.key, handler.target)
            for alias in handler.aliases:
                self._aliases.offer(alias, handler.target, handler.place)

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Run the file. Raises `HandlerLoadError`, also for two handlers of one name."""
        stamp, file = stamp_of(folder), folder / HANDLERS_FILE
        handlers = handlers_in_path(file) if stamp else []
        refuse_shared_names(handlers)
        return cls(folder, handlers, stamp)

    @property
    def resolvers(self) -> tuple[BaseResolver, ...]:
        """Resolvers that are called before all others for the templates of the folder."""
        return (self._explicit, self._aliases)

    @property
    def names(self) -> list[str]:
        """Names of the handlers, without aliases."""
        return self._explicit.registered_callables()

    def target(self, name: str) -> Any:
        """Return the class, function or object of a name."""
        return self._explicit.get(name)

    def knows(self, name: str) -> bool:
        """Return True if a handler has this name or alias."""
        return any(name in resolver.registered_callables() for resolver in self.resolvers)


class WorkflowHandlers:
    """Folders with handlers, by template.

    A template is looked up by its content hash, else by namespace, name and version, else by namespace and name: a
    running task keeps its version of the template and needs its code after the file has moved on.
    """

    def __init__(self) -> None:
        self._folders: dict[Path, FolderHandlers] = {}
        self._of_template: defaultdict[tuple[str, ...], set[Path]] = defaultdict(set)

    def add(self, folder: Path, templates: Collection[TemplateId]) -> bool:
        """Assign templates to a folder, and load its file if it is new or has changed; return False if nothing changed.

        Raises `HandlerLoadError`, also for a template that exists in another folder too if one of the two has handlers.
        """
        folder = folder.resolve()
        known = self._folders.get(folder)
        neighbours = known if known is not None and known.stamp == stamp_of(folder) else FolderHandlers.load(folder)
        for template in templates:
            self._refuse_second_folder(template, neighbours)
        self._folders[folder] = neighbours
        keys = [key for template in templates for key in _keys(template)]
        changed = neighbours is not known or any(folder not in self._of_template[key] for key in keys)
        for key in keys:
            self._of_template[key].add(folder)
        return changed

    def of(self, template: TemplateId) -> tuple[FolderHandlers, ...]:
        """Return the folders of a template; several if it is ambiguous which of them belongs to it."""
        for key in _keys(template):
            if folders := self._of_template.get(key):
                return tuple(self._folders[folder] for folder in sorted(folders))
        return ()

    @property
    def names(self) -> set[str]:
        """Names of the handlers of all folders, without aliases."""
        return {name for neighbours in self._folders.values() for name in neighbours.names}

    @property
    def targets(self) -> dict[str, Any]:
        """Handlers of all folders by name."""
        return {name: neighbours.target(name) for neighbours in self._folders.values() for name in neighbours.names}

    def clear(self) -> None:
        self._folders.clear()
        self._of_template.clear()

    def _refuse_second_folder(self, template: TemplateId, neighbours: FolderHandlers) -> None:
        for folder in self._of_template.get(template, set()) - {neighbours.folder}:
            if neighbours.names or self._folders[folder].names:
                places = " and ".join(sorted((str(folder), str(neighbours.folder))))
                raise HandlerLoadError(
                    f"the template {template} exists in {places}, each with handlers of its own",
                    hint="serve one of the folders, or give one of the templates another name or version",
                )


def stamp_of(folder: Path) -> tuple[int, int] | None:
    """Return the modification time and size of the folder's `handlers.py`; None if there is no file."""
    file = folder / HANDLERS_FILE
    if not file.is_file():
        return None
    status = file.stat()
    return (status.st_mtime_ns, status.st_size)


def refuse_unclear(
    callable_name: str, step: str, template: TemplateId | None, beside: Sequence[FolderHandlers]
) -> None:
    """Raise `HandlerNotFound` if several folders may belong to the template and one of them has the handler."""
    if any(neighbours.knows(callable_name) for neighbours in beside):
        raise HandlerNotFound(
            f"{template} may belong to {' and '.join(str(neighbours.folder) for neighbours in beside)}: it is not "
            f"clear which handler {callable_name!r} is meant" + (f" (step {step!r})" if step else ""),
            missing=[MissingCallable(step, callable_name, ())],
            hint="serve one of the folders, or give one of the templates another name",
        )


def _keys(template: TemplateId) -> tuple[tuple[str, ...], ...]:
    """Return the lookup keys of a template, the most specific first."""
    return (template, template[:3], template[:2])
