"""Settings that inherit the value of another setting while unset; filled in once, for processes and for people."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import field
from typing import Any

from tasker.dataclasses import dataclass
from tasker.settings.breakers import PRESETS
from tasker.settings.catalogue import parameters
from tasker.settings.model import Settings
from tasker.settings.nested import deep_merge, nested
from tasker.settings.table import Table

BREAKERS = "common.circuit_breakers"
WORKER = "worker.event_systems.worker"
POLLER = f"{WORKER}.metadata.fallback_poller"
POLL_INTERVAL = "common.queues.poll_interval_ms"
Source = tuple[Any, str]
"""Value, and the path that supplied it."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """Settings as processes use them. `taken_from` maps each inherited value's path to the path that supplied it."""

    settings: Settings
    taken_from: Mapping[str, str] = field(default_factory=dict)


def resolved(settings: Settings) -> Resolved:
    """Return the settings with all inherited values filled in. The operation is idempotent."""
    taken = {path: (value, source) for path, value, source in _inherited(settings)}
    if not taken:
        return Resolved(settings)
    values = nested({path: value for path, (value, _) in taken.items()})
    filled = type(settings).parse(deep_merge(settings.to_dict(only_set=True), values))
    return Resolved(filled, {path: source for path, (_, source) in taken.items()})


def _inherited(settings: Settings) -> Iterator[tuple[str, Any, str]]:
    """Yield (path, value, path of the source), at most once per path."""
    for name in ("failure_threshold", "success_threshold", "timeout_seconds"):
        yield from _threshold(settings, name)
    polled = [_set_value(settings, f"{WORKER}.timing.fallback_polling_interval_seconds", 1000)]
    for backend_path, common in overruled(settings):
        yield from _overruled(settings, backend_path, common)
        polled += [_set_value(settings, backend_path)] if common == POLL_INTERVAL else []
    yield from _first(settings, f"{POLLER}.polling_interval_ms", [*polled, _set_value(settings, POLL_INTERVAL)])
    system = settings.worker.event_systems.worker
    if system.deployment_mode == "Hybrid" and not system.metadata.fallback_poller.enabled:
        yield f"{WORKER}.deployment_mode", "EventDrivenOnly", f"{POLLER}.enabled"


def overruled(settings: Settings) -> list[tuple[str, str]]:
    """Return (path, overridden path) for the settings that the chosen messaging backend overrides."""
    chosen = f"common.queues.{settings.common.queues.backend}."
    return [
        (parameter.path, parameter.overrules)
        for parameter in parameters()
        if parameter.overrules and parameter.path.startswith(chosen)
    ]


def _overruled(settings: Settings, own: str, common: str) -> Iterator[tuple[str, Any, str]]:
    """Give both settings the value that is used: the backend's own if set, else the common one."""
    if source := _set_value(settings, own):
        yield common, *source
    else:
        yield from _first(settings, own, [_set_value(settings, common)])


def _threshold(settings: Settings, name: str) -> Iterator[tuple[str, Any, str]]:
    """Of a component: its own preset, else what is set for all, else the preset for all."""
    common = f"{BREAKERS}.default_config"
    for_all = [_preset(settings, common, name)]
    yield from _first(settings, f"{common}.{name}", for_all)
    for component in ("messaging", "task_readiness", "web"):
        component_path = f"{BREAKERS}.component_configs.{component}"
        sources = [_preset(settings, component_path, name), _set_value(settings, f"{common}.{name}"), *for_all]
        yield from _first(settings, f"{component_path}.{name}", sources)


def _first(settings: Settings, path: str, sources: list[Source | None]) -> Iterator[tuple[str, Any, str]]:
    """Yield the first existing source, unless the path is set."""
    source = next(filter(None, sources), None)
    if source is not None and not _is_set(settings, path):
        yield path, *source


def _preset(settings: Settings, table: str, name: str) -> Source | None:
    preset = PRESETS.get(_table(settings, table).to_dict()["preset"])
    return (preset[name], f"{table}.preset") if preset else None


def _set_value(settings: Settings, path: str, factor: int = 1) -> Source | None:
    above, _, name = path.rpartition(".")
    return (getattr(_table(settings, above), name) * factor, path) if _is_set(settings, path) else None


def _is_set(settings: Settings, path: str) -> bool:
    above, _, name = path.rpartition(".")
    return _table(settings, above).is_set(name)


def _table(settings: Settings, path: str) -> Table:
    table: Any = settings
    for name in path.split("."):
        table = getattr(table, name)
    return table  # type: ignore[no-any-return]
