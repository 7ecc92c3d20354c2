"""Import of user code, with errors that name the failing line."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import re
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from tasker.errors import HandlerLoadError, TaskerError

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
            found = path.stat()  # before the run: an edit during the run then counts as a change
            vars(module)[STATE] = f"{found.st_mtime_ns}:{found.st_size}"
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
        file, line = _place(error, path)
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
    ours = {number: each for number, each in handlers.items() if _is_ours(each)}
    try:
        yield
    finally:
        for number, handler in ours.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)


def _is_ours(handler: Any) -> bool:
    return str(getattr(handler, "__module__", "")).startswith("tasker.")


def _place(error: BaseException, path: Path | None) -> tuple[str, int | None]:
    """File and line of the user's code that failed; no file where none is known."""
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, error.lineno
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if not frame.filename.startswith("<frozen")]
    own = [frame for frame in frames if path is None or Path(frame.filename) == path]
    outside = [frame for frame in own if Path(frame.filename).parent != Path(__file__).parent]
    usable = [frame for frame in outside if "importlib" not in frame.filename]
    return (usable[-1].filename, usable[-1].lineno) if usable else ("", None)


def _hint(error: BaseException, path: Path | None) -> str | None:
    if isinstance(error, TaskerError):
        return error.hint
    if isinstance(error, SystemExit):
        return "it would end the worker: what is for running it by itself belongs below `if __name__ == '__main__':`"
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
