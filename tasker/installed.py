"""Entry points of installed distributions; an offered object is imported only when it is chosen by name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from tasker.version import DISTRIBUTION

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OURS = "tasker."
"""Prefix of the entry-point groups that Tasker reads."""
BACKENDS_GROUP = "tasker.backends"


def offered(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, sorted by name and without exact duplicates."""
    return _offered(group, tuple(sys.path))


@cache
def _offered(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group, cached per search path.

    Reading means scanning every metadata folder, and the settings need the result for each parameter.
    """
    if not _mentioned(group, path):
        return ()
    points = {(point.name, point.value): point for point in _entry_points(path) if point.group == group}
    return tuple(sorted(points.values(), key=lambda point: (point.name, point.value)))


@cache
def _entry_points(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Return the entry points of all of Tasker's groups at once, because each read scans every installed distribution.

    Entry points of other projects, which can be hundreds, are not cached.
    """
    from importlib.metadata import entry_points  # takes as long as all other imports of `tasker --help`

    points = entry_points()
    return tuple(point for group in points.groups if group.startswith(OURS) for point in points.select(group=group))


def _mentioned(group: str, path: tuple[str, ...]) -> bool:
    """Return False if no distribution declares the group. This check is cheap, and most groups are not declared."""
    texts = _declarations(path)
    return texts is None or any(f"[{group}]" in text for text in texts)


@cache
def _declarations(path: tuple[str, ...]) -> tuple[str, ...] | None:
    """Return the contents of all distributions' entry-point files.

    None if entry points may be declared elsewhere as well.
    """
    from importlib.machinery import PathFinder
    from pathlib import Path

    finders = [finder for finder in sys.meta_path if hasattr(finder, "find_distributions")]
    places = [Path(place) for place in path]
    if finders != [PathFinder] or any(place.is_file() or place.suffix == ".egg" for place in places):
        return None
    declared = [file for place in places for file in place.glob("*.*-info/entry_points.txt")]
    return tuple(file.read_text("utf-8", errors="replace") for file in declared)


def install_command(extra: str, distribution: str = DISTRIBUTION) -> str:
    """Return the `pip` command that installs the packages of a distribution's extra.

    It names the packages, which can be installed wherever the distribution itself came from.
    """
    from importlib.metadata import PackageNotFoundError, requires

    try:
        declared = requires(distribution) or []
    except PackageNotFoundError:
        declared = []
    parts = [requirement.partition(";") for requirement in declared]
    needed = [name.strip() for name, _, marker in parts if f"extra == '{extra}'" in marker.replace('"', "'")]
    return f"pip install {' '.join(map(repr, needed or [f'{distribution}[{extra}]']))}"


def installed_backends() -> list[str]:
    """Return the names of the installed messaging backends, sorted."""
    return sorted({point.name for point in offered(BACKENDS_GROUP)})


def backend_modules() -> Iterator[tuple[str, Any]]:
    """Yield (name, module) of each messaging backend that imports here and that exactly one distribution offers.

    `tasker.messaging.load_backend` reports the problems of the others when one of them is chosen.
    """
    points = offered(BACKENDS_GROUP)
    names = [point.name for point in points]
    for point in points:
        if names.count(point.name) == 1 and (module := _module(point)) is not None:
            yield point.name, module


def backend_variables() -> frozenset[str]:
    """Return the environment variables that the backends declare (`VARIABLES`), without importing their settings."""
    return frozenset(name for _, module in backend_modules() for name in getattr(module, "VARIABLES", ()))


def _module(point: EntryPoint) -> Any:
    try:
        return point.load()
    except KeyboardInterrupt:
        raise
    # a third-party package that may not be in use must not stop the process, not even with sys.exit
    except BaseException:
        return None
