"""Search for handlers in modules, packages and folders; errors name the file and line."""

from __future__ import annotations

import ast
import hashlib
import importlib
import importlib.util
import inspect
import re
import signal
import sys
import threading
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from tasker.dataclasses import dataclass
from tasker.errors import HandlerLoadError, TaskerError
from tasker.handlers.step_handler import StepHandler

PREFIX = "tasker_workflow_"

STATE = "__tasker_state__"
"""Attribute of a module made by `load_file` that identifies the file's content at that time."""


def import_module(name: str) -> ModuleType:
    """Import a module. Raises `HandlerLoadError` if it is missing or fails."""
    with loading(f"the module {name!r}"):
        return importlib.import_module(name)


def load_file(path: Path) -> ModuleType:
    """Load the module in a file under a unique name, running it again if it was loaded before.

    Its folder is its package, so that `from . import helpers` finds the file beside it. Raises `HandlerLoadError` with
    file, line and exception.
    """
    path = path.resolve()
    name = f"{_package(path.parent)}.{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise HandlerLoadError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        with loading(str(path), path):
            file_stat = path.stat()  # before the run: an edit during the run then counts as a change
            vars(module)[STATE] = f"{file_stat.st_mtime_ns}:{file_stat.st_size}"
            spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def file_of(module_name: str) -> str | None:
    """Return the file of a module that `load_file` made; None for an ordinary module."""
    module = sys.modules.get(module_name) if module_name.startswith(PREFIX) else None
    return getattr(module, "__file__", None)


def loaded_files() -> list[ModuleType]:
    """Return the modules that `load_file` made."""
    return [module for name, module in list(sys.modules.items()) if name.startswith(PREFIX) and file_of(name)]


def _package(folder: Path) -> str:
    """Return the name of the folder's package, which is created at its first use."""
    digest = hashlib.sha256(str(folder).encode()).hexdigest()[:8]
    name = f"{PREFIX}{re.sub(r'[^0-9a-zA-Z]+', '_', folder.name)}_{digest}"
    if name not in sys.modules:
        package = ModuleType(name)
        package.__path__ = [str(folder)]
        sys.modules[name] = package
    return name


@contextmanager
def loading(what: str, path: Path | None = None) -> Iterator[None]:
    """Convert any exception of an import into a `HandlerLoadError` that names the line.

    A signal handler of Tasker that the import replaced is restored: without it a process would not shut down
    gracefully.
    """
    try:
        with _our_signal_handlers():
            yield
    except HandlerLoadError:
        raise
    except (Exception, SystemExit) as error:
        kind = "" if isinstance(error, TaskerError) else f"{type(error).__name__}: "
        file, line = _location(error, path)
        place = f"{file}:{line}: " if file else ""
        raise HandlerLoadError(
            f"{what} cannot be loaded: {place}{kind}{error}",
            hint=_hint(error, path),
            line=line if path and file == str(path) else None,
        ) from error


@contextmanager
def _our_signal_handlers() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # signal handlers can be set in the main thread only
        yield
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)}
    tasker_handlers = {number: callback for number, callback in handlers.items() if _is_ours(callback)}
    try:
        yield
    finally:
        for number, handler in tasker_handlers.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)


def _is_ours(handler: Any) -> bool:
    return str(getattr(handler, "__module__", "")).startswith("tasker.")


def _location(error: BaseException, path: Path | None) -> tuple[str, int | None]:
    """File and line of the user's code that failed; no file where none is known."""
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    file_frames = [frame for frame in frames if path is None or Path(frame.filename) == path]
    outside = [frame for frame in file_frames if Path(frame.filename).parent != Path(__file__).parent]
    usable = [frame for frame in outside if "importlib" not in frame.filename]
    return (usable[-1].filename, usable[-1].lineno) if usable else ("", None)


def _hint(error: BaseException, path: Path | None) -> str | None:
    if isinstance(error, TaskerError):
        return error.hint
    if isinstance(error, SystemExit):
        return "it would end the worker: move code for running the file directly below `if __name__ == '__main__':`"
    if isinstance(error, TypeError) and "'module' object is not callable" in str(error):
        return _module_for_its_function(error)
    if isinstance(error, ImportError) and "beyond top-level package" in str(error):
        return "it is loaded with its folder alone: import what lies above by its full name, `from my_package.x ...`"
    name = error.name if isinstance(error, ModuleNotFoundError) else None
    if name and path and (path.parent / f"{name}.py").exists():
        return f"{name}.py lies beside it: write `from . import {name}` or `from .{name} import ...`"
    if name and path and name in path.parent.parts:
        return f"{name} is a folder here and not installed: `pip install -e .` in its project, or import relatively"
    return f"is the package that holds {name!r} installed in this environment?" if name else None


def _module_for_its_function(error: TypeError) -> str | None:
    """Return a hint if user code called a module that contains a function of the same name, such as `step_handler`."""
    names = [frame.f_globals for frame, _ in traceback.walk_tb(error.__traceback__)][-1]
    meant = [
        f"{name} is a module here: write `from {module.__name__} import {name}`"
        for name, module in names.items()
        if isinstance(module, ModuleType) and callable(getattr(module, name, None))
    ]
    return meant[0] if meant else None


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
        from tasker.handlers.events.registries import register_from

        register_from(module)
    seen: dict[int, FoundHandler] = {}
    for name, value in list(vars(module).items()):
        if _is_handler(value, base_class) and not name.startswith("_"):
            seen.setdefault(id(value), _found(value, module))
    return list(seen.values())


def handlers_in_package(name: str, base_class: type = StepHandler) -> list[FoundHandler]:
    """Return the handlers of a module and its submodules. Raises `HandlerLoadError` if a module fails to import."""
    handlers = [handler for module in _walk(import_module(name)) for handler in handlers_in_module(module, base_class)]
    return list({id(handler.target): handler for handler in reversed(handlers)}.values())[::-1]


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
    """Return True if the `__init__.py` beside the file imports it: it is part of the package, under any name."""
    init = file.with_name("__init__.py")
    return file != init and init.is_file() and file.stem in _imports_of(init)


def _imports_of(init: Path) -> set[str]:
    """Return the modules of its own folder that an `__init__.py` imports; empty if it cannot be parsed."""
    try:
        nodes = list(ast.walk(ast.parse(init.read_bytes())))
    except (SyntaxError, ValueError, OSError):
        return set()
    modules = set()
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.level == 1:
            modules |= {node.module.partition(".")[0]} if node.module else {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            modules |= _below(init.parent.name, [f"{node.module}.{alias.name}" for alias in node.names])
        elif isinstance(node, ast.Import):
            modules |= _below(init.parent.name, [alias.name for alias in node.names])
    return modules


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
    qualname = value.__qualname__
    key = cls.handler_name or qualname
    aliases = dict.fromkeys([qualname, *_dotted(value.__module__, qualname)])
    aliases.pop(key, None)
    return FoundHandler(key, tuple(aliases), value, f"{_source(value.__module__)}:{qualname}")


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
