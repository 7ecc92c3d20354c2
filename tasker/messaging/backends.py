"""Messaging backends by name, from the entry-point group `tasker.backends`. Only the chosen one is created."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.metadata import EntryPoint
from typing import Any

from tasker.errors import BackendUnavailable
from tasker.installed import BACKENDS_GROUP, install_command, installed_backends, offered
from tasker.messaging.port import Backend
from tasker.settings.addresses import BackendSettings
from tasker.version import DISTRIBUTION


def load_backend(name: str, settings: BackendSettings) -> Backend:
    """Create the backend of that name with its module's `create(settings)`, without opening it.

    Raises `BackendUnavailable` for an unknown name (the installed ones are listed), a name offered by two
    distributions, a missing package (with the pip command), or a module that does not satisfy the contract.
    """
    point = _entry_point(name)
    with _naming_what_is_missing(point):
        backend = _create_of(point.load(), point)(settings)
    if not isinstance(backend, Backend):
        missing = ", ".join(_missing(backend)) or "nothing visible"
        raise BackendUnavailable(
            f"messaging backend {name!r} ({point.value}) does not keep the contract, it lacks: {missing}",
            retryable=False,
            hint="see tasker.messaging.port.Backend and tasker.testing.messaging_contract",
        )
    return backend


def _entry_point(name: str) -> EntryPoint:
    points = [point for point in offered(BACKENDS_GROUP) if point.name == name]
    if len(points) == 1:
        return points[0]
    if points:
        places = ", ".join(f"{point.value} (of {_distribution(point)})" for point in points)
        raise BackendUnavailable(
            f"messaging backend {name!r} is offered more than once: {places}",
            retryable=False,
            hint="uninstall all but one of them",
        )
    names = ", ".join(installed_backends()) or "none"
    raise BackendUnavailable(
        f"no messaging backend {name!r}; installed: {names}",
        retryable=False,
        hint="check the setting common.queues.backend (TASKER_MESSAGING_BACKEND)",
    )


@contextmanager
def _naming_what_is_missing(point: EntryPoint) -> Iterator[None]:
    """Raise `BackendUnavailable` with the pip command if importing or creating the backend lacks its client library."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise BackendUnavailable(
            f"messaging backend {point.name!r} needs {error.name!r}, which is not installed",
            retryable=False,
            hint=install_command(point.name, _distribution(point)),
        ) from error


def _distribution(point: EntryPoint) -> str:
    return point.dist.name if point.dist else DISTRIBUTION


def _create_of(module: Any, point: EntryPoint) -> Callable[[BackendSettings], object]:
    create = getattr(module, "create", None)
    if callable(create):
        return create  # type: ignore[no-any-return]
    raise BackendUnavailable(
        f"messaging backend {point.name!r}: {point.value} has no create(settings)",
        retryable=False,
        hint="the entry point must name a module with `def create(settings) -> Backend`",
    )


def _missing(backend: object) -> list[str]:
    names = [name for name in vars(Backend) if not name.startswith("_")] + ["capabilities"]
    return sorted({name for name in names if not hasattr(backend, name)})
