"""Explanations for an unresolved callable: objects and files with its name that are not loaded as handlers."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from tasker.handlers.binding import reads_arguments
from tasker.handlers.registry.discovery import LEFT_OUT, loaded_files
from tasker.handlers.step_handler import StepHandler
from tasker.template.builtin import plugin_hint


def explain_missing_callable(callables: Sequence[str], folders: Iterable[Path] = ()) -> str | None:
    """Return the reasons why callables are missing, or None.

    There is one sentence per callable whose name belongs to something that is not a handler, or appears in a skipped
    file, and one per file in `folders` (those of templates without a `handlers.py`) that defines some of them.
    """
    hints = [hint for name in callables if (hint := plugin_hint(name)) is not None]
    reasons = [*hints, *(reason for name in callables for reason in (*_near_misses(name), *_left_out(name)))]
    beside = [reason for folder in folders for reason in _beside(callables, folder)]
    return "; ".join(dict.fromkeys([*reasons, *beside])) or None


def _near_misses(name: str) -> Iterator[str]:
    for value in {id(value): value for value in _candidates()}.values():
        if _may_be_meant(value, name) and (reason := _reason(value, name)):
            yield f"{_location(value)}: {reason}"


def _candidates() -> Iterator[Any]:
    for module in loaded_files():
        members = (value for value in vars(module).values() if getattr(value, "__module__", None) == module.__name__)
        yield from (value for value in members if inspect.isclass(value) or inspect.isfunction(value))
    yield from _subclasses(StepHandler)


def _subclasses(cls: type[Any]) -> Iterator[type[Any]]:
    for below in cls.__subclasses__():
        yield below
        yield from _subclasses(below)


def _may_be_meant(value: Any, name: str) -> bool:
    """Return True if the name probably refers to the value.

    A function with `@inputs` or `@depends_on` was written as a handler, so the last part of the name suffices.
    """
    return name in _names(value) or (reads_arguments(value) and name.rpartition(".")[2] == value.__name__)


def _names(value: Any) -> set[str]:
    """Return the names by which a template may refer to the value, for an undecorated function also its bare name."""
    qualname = value.__qualname__
    stem = Path(_file(value)).stem
    return {
        str(getattr(value, "handler_name", qualname)),
        qualname,
        f"{stem}.{qualname}",
        f"{value.__module__}.{qualname}",
    }


def _reason(value: Any, name: str) -> str | None:
    if hasattr(value, "_handler_class"):
        return None
    if inspect.isfunction(value):
        return f'the function {value.__name__} is no handler: write @step_handler("{name}") above it'
    if inspect.isabstract(value):
        missing = ", ".join(sorted(value.__abstractmethods__))
        return f"the class {value.__name__} is no handler: it has no `{missing}`, write `def {missing}(self, context)`"
    if not issubclass(value, StepHandler):
        return f"the class {value.__name__} is no handler: derive it from StepHandler"
    return None


def _location(value: Any) -> str:
    try:
        return f"{_file(value)}:{inspect.getsourcelines(value)[1]}"
    except (OSError, TypeError):
        return _file(value)


def _file(value: Any) -> str:
    try:
        return inspect.getsourcefile(value) or value.__module__
    except TypeError:
        return str(value.__module__)


def _left_out(name: str) -> Iterator[str]:
    for file in LEFT_OUT:
        if name in _text(file):
            yield f"{file} has {name!r} and was left out for its name: give it by name (--handlers {file}) or rename it"


def _beside(callables: Iterable[str], folder: Path) -> Iterator[str]:
    """Yield files beside a template that define the callables.

    Files that only mention them, such as tests, are skipped.
    """
    for file in sorted(folder.glob("*.py")):
        text = _text(file)
        if names := [repr(name) for name in dict.fromkeys(callables) if _defines(text, name)]:
            yield (
                f"{file} has {' and '.join(names)}, and beside a template only handlers.py is loaded: rename it, "
                f"or give it (--handlers {file})"
            )


def _text(file: Path) -> str:
    """Return the file's text; empty if it is gone, is a folder, or cannot be read."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _defines(text: str, name: str) -> bool:
    """Return True if the text defines the name.

    That is a decorator with this name, a class with this `handler_name`, or a class or function of this name.
    """
    quoted, bare_name = f"[\"']{re.escape(name)}[\"']", re.escape(name.rpartition(".")[2])
    forms = (
        rf"^\s*@\w[\w.]*\(\s*{quoted}",
        rf"\bhandler_name\b.*=\s*{quoted}",
        rf"^(async def|def|class) {bare_name}\b",
    )
    return any(re.search(form, text, re.MULTILINE) for form in forms)
