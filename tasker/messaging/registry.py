"""Backends by name: the entry-point group `tasker.backends`. Only the chosen one is imported."""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from tasker.contracts.messaging import Backend, BackendSettings
from tasker.errors import BackendUnavailable
from tasker.version import DISTRIBUTION

GROUP = "tasker.backends"


def installed_backends() -> list[str]:
    """Names that `load_backend` knows, sorted."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def load_backend(name: str, settings: BackendSettings) -> Backend:
    """The backend of that name, made by its module's `create(settings)` and not yet opened.

    Raises `BackendUnavailable`: unknown name (the installed ones are listed), two distributions that offer the name, a
    package that is missing (with the pip command), a module that does not keep the contract.
    """
    point = _entry_point(name)
    create = _create_of(_imported(point), point)
    backend = create(settings)
    if not isinstance(backend, Backend):
        missing = ", ".join(_missing(backend)) or "nothing visible"
        raise BackendUnavailable(
            f"messaging backend {name!r} ({point.value}) does not keep the contract, it lacks: {missing}",
            retryable=False,
            hint="see tasker.contracts.messaging.Backend and tasker.testing.messaging_contract",
        )
    return backend


def _entry_point(name: str) -> EntryPoint:
    offered = {point.value: point for point in entry_points(group=GROUP, name=name)}
    if len(offered) == 1:
        return next(iter(offered.values()))
    if offered:
        places = ", ".join(f"{value} (of {_distribution(offered[value])})" for value in sorted(offered))
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


def _imported(point: EntryPoint) -> Any:
    try:
        return point.load()
    except ModuleNotFoundError as error:
        raise BackendUnavailable(
            f"messaging backend {point.name!r} needs {error.name!r}, which is not installed",
            retryable=False,
            hint=f"pip install '{_distribution(point)}[{point.name}]'",
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
