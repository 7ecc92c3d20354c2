"""Finding the handlers in modules, packages and folders."""

from __future__ import annotations

import inspect
import pkgutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from tasker.registry.module_loading import file_of, import_module, load_file
from tasker.step_handler.base import StepHandler


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
    """The concrete handler classes and decorated functions of a module, in its order (D-107, D-108)."""
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


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    if (path / "handlers.py").is_file():
        return [path / "handlers.py"]
    parts = (file for file in sorted(path.rglob("*.py")) if not file.name.startswith(("_", "test_")))
    return [file for file in parts if not any(part.startswith(".") for part in file.relative_to(path).parts)]


def _walk(module: ModuleType) -> Iterator[ModuleType]:
    yield module
    for info in pkgutil.walk_packages(getattr(module, "__path__", []), f"{module.__name__}."):
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
    return FoundHandler(key, tuple(aliases), value, f"{file_of(value.__module__) or value.__module__}:{own}")


def _dotted(module: str, name: str) -> list[str]:
    file = file_of(module)
    if file is None:
        return [f"{module}.{name}"]
    path = Path(file)
    return [f"{path.stem}.{name}", f"{path.parent.name}.{path.stem}.{name}"]
