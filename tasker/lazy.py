"""Lazy exports: packages that offer names of other modules without importing all of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from importlib import import_module


def names_of(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return the `__getattr__` of a package (PEP 562) that imports a name from its module at its first use.

    `dir()` of the package lists all names. `homes` maps modules to their names, separated by spaces.
    """
    home_by_name = {name: home for home, names in homes.items() for name in names.split()}

    list_names(package, home_by_name)

    def get(name: str) -> object:
        if name not in home_by_name:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value = getattr(import_module(home_by_name[name]), name)
        setattr(import_module(package), name, value)
        return value

    return get


def list_names(package: str, names: Iterable[str]) -> None:
    """Make `dir()` of a package list names that are not imported yet, for completion in a shell."""
    attributes = vars(sys.modules[package])
    attributes["__dir__"] = lambda: sorted({*attributes, *names})
