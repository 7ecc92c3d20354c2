"""Discovery of handlers in modules, packages and folders."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.errors import HandlerLoadError
from tasker.registry.module_loading import file_of, import_module, load_file
from tasker.step_handler.base import StepHandler

SKIPPED = ("_", "test_")
"""Prefixes of files that are not loaded with their folder: tests, and modules for import by others."""

LEFT_OUT: dict[Path, None] = {}
"""Files that were not loaded with their folder, for the error about a missing handler."""


@dataclass(frozen=True, slots=True)
class FoundHandler:
    """A discovered handler and its names: `key` is `handler_name`, or the name of the class without one."""

    key: str
    aliases: tuple[str, ...]
    target: Any
    place: str

    @property
    def names(self) -> tuple[str, ...]:
        """All names, the key first."""
        return (self.key, *self.aliases)


def handlers_in_module(module: ModuleType, base_class: type = StepHandler) -> list[FoundHandler]:
    """Return the concrete handler classes and decorated functions of a module, in its order.

    Publishers and subscribers of domain events that the module defines are registered too.
    """
    if "tasker.domain_events" in sys.modules:  # otherwise no module can have derived a class from it
        from tasker.domain_events.discovery import register_from

        register_from(module)
    seen: dict[int, FoundHandler] = {}
    for name, value in list(vars(module).items()):
        if _is_handler(value, base_class) and not name.startswith("_"):
            seen.setdefault(id(value), _found(value, module))
    return list(seen.values())


def handlers_in_package(name: str, base_class: type = StepHandler) -> list[FoundHandler]:
    """Return the handlers of a module and its submodules. Raises `HandlerLoadError` if a module fails to import."""
    found = [handler for module in _walk(import_module(name)) for handler in handlers_in_module(module, base_class)]
    return list({id(handler.target): handler for handler in reversed(found)}.values())[::-1]


def handlers_in_path(path: Path) -> list[FoundHandler]:
    """Return the handlers of a file; for a folder those of its `handlers.py`, or else of every file below it."""
    return [handler for file in _files(path) for handler in handlers_in_module(load_file(file))]


def refuse_shared_names(handlers: Sequence[FoundHandler]) -> None:
    """Raise `HandlerLoadError` if two handlers have the same name."""
    places: dict[str, str] = {}
    for handler in handlers:
        other = places.setdefault(handler.key, handler.place)
        if other != handler.place:
            raise HandlerLoadError(
                f"two handlers claim the name {handler.key!r}: {other} and {handler.place}",
                hint="give one of them another handler_name",
            )


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if (path / "handlers.py").is_file():
        return [path / "handlers.py"]
    visible = [file for file in sorted(path.rglob("*.py")) if not _is_hidden(file.relative_to(path))]
    skipped = [file for file in visible if file.name.startswith(SKIPPED) and not _is_imported_by_its_package(file)]
    LEFT_OUT.update(dict.fromkeys(skipped))
    return [file for file in visible if file not in skipped]


def _is_imported_by_its_package(file: Path) -> bool:
    """Return True if the `__init__.py` beside the file imports it: it is part of the package, whatever its name."""
    init = file.with_name("__init__.py")
    return file != init and init.is_file() and file.stem in _imports_of(init)


def _imports_of(init: Path) -> set[str]:
    """Return the modules of its own folder that an `__init__.py` imports; empty if it cannot be parsed."""
    try:
        nodes = list(ast.walk(ast.parse(init.read_bytes())))
    except (SyntaxError, ValueError, OSError):
        return set()
    found = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            found |= {node.module.partition(".")[0]} if node.module else {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found |= _below(init.parent.name, [f"{node.module}.{each.name}" for each in node.names])
        elif isinstance(node, ast.Import):
            found |= _below(init.parent.name, [each.name for each in node.names])
    return found


def _below(package: str, names: Sequence[str]) -> set[str]:
    """Return the parts after the package in dotted names.

    `shop.test_pay` and `our.shop.test_pay.pay` give `test_pay` for the package `shop`.
    """
    parts = [f".{name}".partition(f".{package}.")[2].partition(".")[0] for name in names]
    return {part for part in parts if part}


def _is_hidden(file: Path) -> bool:
    return any(part.startswith(".") for part in file.parts)


def _walk(module: ModuleType) -> Iterator[ModuleType]:
    from pkgutil import walk_packages  # needed for packages only

    yield module
    for info in walk_packages(getattr(module, "__path__", []), f"{module.__name__}."):
        yield import_module(info.name)


def _is_handler(value: Any, base_class: type) -> bool:
    if inspect.isclass(value):
        shipped = value.__module__.startswith(("tasker.step_handler", "tasker.batch_processing"))
        return issubclass(value, base_class) and not inspect.isabstract(value) and not shipped
    return inspect.isfunction(value) and issubclass(getattr(value, "_handler_class", type(None)), base_class)


def _found(value: Any, module: ModuleType) -> FoundHandler:
    cls = getattr(value, "_handler_class", value)
    own = value.__qualname__
    key = cls.handler_name or own
    aliases = dict.fromkeys([own, *_dotted(value.__module__, own)])
    aliases.pop(key, None)
    return FoundHandler(key, tuple(aliases), value, f"{_source(value.__module__)}:{own}")


def _source(module: str) -> str:
    """Return the file's path, which is the same for a loaded file and an imported module."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return str(Path(file).resolve()) if file else module


def _dotted(module: str, name: str) -> list[str]:
    file = file_of(module)
    if file is None:
        return [f"{module}.{name}"]
    path = Path(file)
    return [f"{path.stem}.{name}", f"{path.parent.name}.{path.stem}.{name}"]
