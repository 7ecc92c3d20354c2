"""What programs and plugins use is documented where it stands; docstrings are sentences in the usual words."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module

from tasker.messaging import port as messaging
from tasker.plugins import hooks as hookspecs
from tests.support.repository import ROOT

FOLDERS = ("tasker", "backends", "compat", "plugins")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
CLAUSE = re.compile(r"(What|Who|Whose|Whoever|How|Where|When|Whether|Which) ")


def offered() -> Iterator[tuple[str, object]]:
    """Every name in an `__all__` of `tasker`, with what it names."""
    for path in sorted((ROOT / "tasker").rglob("__init__.py")):
        package = ".".join(path.parent.relative_to(ROOT).parts)
        module = import_module(package)
        for name in getattr(module, "__all__", ()):
            yield f"{package}.{name}", getattr(module, name)


def public_parts(name: str, value: object) -> Iterator[tuple[str, object]]:
    """The value, and of a class of ours its public methods and properties."""
    yield name, value
    if inspect.isclass(value) and value.__module__.startswith("tasker"):
        for part, member in vars(value).items():
            if not part.startswith("_") and (inspect.isfunction(member) or isinstance(member, property)):
                yield f"{name}.{part}", member


def is_ours(value: object) -> bool:
    """True for a class, function or property of ours; an alias or a constant has no docstring at run time."""
    if isinstance(value, property):
        return True
    return (inspect.isclass(value) or inspect.isfunction(value)) and value.__module__.startswith("tasker")


def test_exported_names_hooks_and_ports_have_docstrings() -> None:
    hooks = [(f"hookspecs.{name}", hook) for name, hook in vars(hookspecs.Hooks).items() if name[0] != "_"]
    ports = [(f"messaging.{name}", value) for name, value in vars(messaging).items() if inspect.isclass(value)]
    documented = [part for name, value in [*offered(), *hooks, *ports] for part in public_parts(name, value)]

    assert len(documented) > 300
    assert [name for name, value in documented if is_ours(value) and not inspect.getdoc(value)] == []


def test_docstrings_begin_with_a_verb_or_a_noun() -> None:
    clauses = [
        f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"
        for path in SOURCES
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, DOCUMENTED) and CLAUSE.match(ast.get_docstring(node) or "")
    ]
    assert clauses == []
