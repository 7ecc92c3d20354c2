"""What installed distributions offer by entry points; what they offer is imported only by name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from tasker.version import DISTRIBUTION

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

OURS = "tasker."
"""How the groups begin that are asked for."""
BACKENDS_GROUP = "tasker.backends"


def offered(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group, those that only repeat another one left out, by name."""
    return _offered(group, tuple(sys.path))


@cache
def _offered(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Read once for each search path: it means all folders of metadata, and the settings ask for every parameter."""
    if not _mentioned(group, path):
        return ()
    found = {(point.name, point.value): point for point in _entry_points(path) if point.group == group}
    return tuple(sorted(found.values(), key=lambda point: (point.name, point.value)))


@cache
def _entry_points(path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Of all our groups at once: each reading looks through every distribution that is installed. Those of others,
    hundreds with what they belong to, are not kept."""
    from importlib.metadata import entry_points  # takes as long as all else that `tasker --help` imports

    found = entry_points()
    return tuple(point for group in found.groups if group.startswith(OURS) for point in found.select(group=group))


def _mentioned(group: str, path: tuple[str, ...]) -> bool:
    """False when nobody offers anything for the group, which is cheap to know: of most groups nobody does."""
    texts = _declarations(path)
    return texts is None or any(f"[{group}]" in text for text in texts)


@cache
def _declarations(path: tuple[str, ...]) -> tuple[str, ...] | None:
    """The entry points of all distributions, as declared in files; None where they may be elsewhere as well."""
    from importlib.machinery import PathFinder
    from pathlib import Path

    finders = [finder for finder in sys.meta_path if hasattr(finder, "find_distributions")]
    places = [Path(place) for place in path]
    if finders != [PathFinder] or any(place.is_file() or place.suffix == ".egg" for place in places):
        return None
    declared = [file for place in places for file in place.glob("*.*-info/entry_points.txt")]
    return tuple(file.read_text("utf-8", errors="replace") for file in declared)


def install_command(extra: str, distribution: str = DISTRIBUTION) -> str:
    """Return the `pip` command for what an extra of a distribution brings, by the names of the packages: those can be
    installed wherever the distribution itself comes from."""
    from importlib.metadata import PackageNotFoundError, requires

    try:
        declared = requires(distribution) or []
    except PackageNotFoundError:
        declared = []
    parts = [requirement.partition(";") for requirement in declared]
    needed = [name.strip() for name, _, marker in parts if f"extra == '{extra}'" in marker.replace('"', "'")]
    return f"pip install {' '.join(map(repr, needed or [f'{distribution}[{extra}]']))}"


def installed_backends() -> list[str]:
    """Names of the installed messaging backends, sorted."""
    return sorted({point.name for point in offered(BACKENDS_GROUP)})


def backend_modules() -> Iterator[tuple[str, Any]]:
    """(name, module) of each messaging backend that can be imported here and that one distribution offers.

    What is left out is told by `tasker.messaging.load_backend`, when somebody chooses it.
    """
    points = offered(BACKENDS_GROUP)
    names = [point.name for point in points]
    for point in points:
        if names.count(point.name) == 1 and (module := _module(point)) is not None:
            yield point.name, module


def backend_variables() -> frozenset[str]:
    """The environment variables that the backends say their settings have (`VARIABLES`); no settings are imported."""
    return frozenset(name for _, module in backend_modules() for name in getattr(module, "VARIABLES", ()))


def _module(point: EntryPoint) -> Any:
    try:
        return point.load()
    except KeyboardInterrupt:
        raise
    except BaseException:  # of a stranger's package, which nobody may have chosen; sys.exit, too
        return None
