"""What installed distributions offer by entry points; what they offer is imported only by name."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

BACKENDS_GROUP = "tasker.backends"


def offered(group: str) -> tuple[EntryPoint, ...]:
    """The entry points of a group, those that only repeat another one left out, by name."""
    return _offered(group, tuple(sys.path))


@cache
def _offered(group: str, path: tuple[str, ...]) -> tuple[EntryPoint, ...]:
    """Read once for each search path: it means all folders of metadata, and the settings ask for every parameter."""
    from importlib.metadata import entry_points  # takes a while, and not every command asks

    found = {(point.name, point.value): point for point in entry_points(group=group)}
    return tuple(sorted(found.values(), key=lambda point: (point.name, point.value)))


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
