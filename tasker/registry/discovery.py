"""Finding the handlers in modules, packages and folders."""

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
"""How the names of files begin that are not loaded with their folder: they hold tests, or what others import."""

LEFT_OUT: dict[Path, None] = {}
"""The files that were not loaded with their folder, for the error about a handler that is missing."""


@dataclass(frozen=True, slots=True)
class FoundHandler:
    """A handler with its names: `key` is `handler_name` or, without one, the class's name."""

    key: str
    aliases: tuple[str, ...]
    target: Any
    place: str

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, the key first."""
        return (self.key, *self.aliases)


def handlers_in_module(module: ModuleType, base_class: type = StepHandler) -> list[FoundHandler]:
    """The concrete handler classes and decorated functions of a module, in its order.

    Publishers and subscribers of domain events that are defined there are registered on the way.
    """
    if "tasker.domain_events" in sys.modules:  # else nobody has derived a class of it
        from tasker.domain_events.discovery import register_from

        register_from(module)
    seen: dict[int, FoundHandler] = {}
    for name, value in list(vars(module).items()):
        if _is_handler(value, base_class) and not name.startswith("_"):
            seen.setdefault(id(value), _found(value, module))
    return list(seen.values())


def handlers_in_package(name: str, base_class: type = StepHandler) -> list[FoundHandler]:
    """The same for a module with everything below it. Raises `HandlerLoadError` for a module that fails."""
    found = [handler for module in _walk(import_module(name)) for handler in handlers_in_module(module, base_class)]
    return list({id(handler.target): handler for handler in reversed(found)}.values())[::-1]


def handlers_in_path(path: Path) -> list[FoundHandler]:
    """The handlers in a file; in a folder those of its `handlers.py`, or else of every file below it."""
    return [handler for file in _files(path) for handler in handlers_in_module(load_file(file))]


def refuse_shared_names(handlers: Sequence[FoundHandler]) -> None:
    """Raise `HandlerLoadError` for two handlers that have one name."""
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
    """True when the `__init__.py` beside the file imports it: then it belongs to the package, whatever its name."""
    init = file.with_name("__init__.py")
    return file != init and init.is_file() and file.stem in _imports_of(init)


def _imports_of(init: Path) -> set[str]:
    """The modules of its own folder that an `__init__.py` imports; none of one that cannot be read."""
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
    """What follows the package in dotted names: `shop.test_pay` and `our.shop.test_pay.pay` give `test_pay`."""
    parts = [f".{name}".partition(f".{package}.")[2].partition(".")[0] for name in names]
    return {part for part in parts if part}


def _is_hidden(file: Path) -> bool:
    return any(part.startswith(".") for part in file.parts)


def _walk(module: ModuleType) -> Iterator[ModuleType]:
    from pkgutil import walk_packages  # for packages alone

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
    """The file, which is the same whether it was loaded as a file or imported as a module."""
    file = getattr(sys.modules.get(module), "__file__", None)
    return str(Path(file).resolve()) if file else module


def _dotted(module: str, name: str) -> list[str]:
    file = file_of(module)
    if file is None:
        return [f"{module}.{name}"]
    path = Path(file)
    return [f"{path.stem}.{name}", f"{path.parent.name}.{path.stem}.{name}"]
