"""Reports about installed plugins: origin, status, hooks and settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Literal, TypeAlias

from tasker.dataclasses import dataclass
from tasker.errors import UsageError
from tasker.plugins.found import Installed, PluginChoice, installed, load, table_or_none
from tasker.plugins.host import PluginHost, PluginState, ready

Status: TypeAlias = Literal["on", "off", "disabled", "refused"]
"""`off`: not named in `plugins.enabled`; `disabled`: not imported; `refused`: cannot be used."""


@dataclass(frozen=True, slots=True)
class PluginReport:
    """Report about one plugin. `problem` is why it cannot be loaded; `settings` are the names in its table."""

    name: str
    status: Status
    distribution: str
    version: str
    place: str
    hooks: Sequence[str] = ()
    settings: Sequence[str] = ()
    problem: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the report as a mapping of plain values."""
        return asdict(self)


def plugin_reports(choice: PluginChoice) -> list[PluginReport]:
    """Return reports of all plugins for a process with this choice; enabled ones are loaded and prepared."""
    return [_report(plugin, choice) for plugin in installed()]


def plugin_reports_of(choice: PluginChoice, plugins: PluginHost) -> list[PluginReport]:
    """Return the current state of this process's plugins, without importing or configuring any."""
    states = {state.name: state for state in plugins.states()}
    return [_observed(plugin, choice, states.get(plugin.name)) for plugin in installed()]


def _observed(plugin: Installed, choice: PluginChoice, state: PluginState | None) -> PluginReport:
    if state is not None:
        return _described(plugin, "on", f"switched off: {state.off}" if state.off else None)
    where = (plugin.distribution, plugin.version, plugin.place)
    if choice.has(plugin) and plugin.name not in choice.disabled:
        problem = "it could not be loaded; see the startup log"
        return PluginReport(plugin.name, "refused", *where, problem=problem)
    return PluginReport(plugin.name, "disabled" if plugin.name in choice.disabled else "off", *where)


def plugin_report(name: str, choice: PluginChoice) -> list[PluginReport]:
    """Return the reports of that plugin name, normally one. Raises `UsageError` if there is none."""
    reports = [_report(plugin, choice) for plugin in installed() if plugin.name == name]
    if not reports:
        names = ", ".join(sorted({plugin.name for plugin in installed()})) or "none"
        raise UsageError(f"unknown plugin {name!r}; installed: {names}", hint="see: tasker plugin list")
    return reports


def _report(plugin: Installed, choice: PluginChoice) -> PluginReport:
    if plugin.name in choice.disabled:
        return _described(plugin, "disabled")
    problem = ready(plugin, choice)[1] if choice.has(plugin) else load(plugin).refusal
    status: Status = "off" if not choice.has(plugin) else "refused" if problem else "on"
    return _described(plugin, status, problem)


def _described(plugin: Installed, status: Status, problem: str | None = None) -> PluginReport:
    known = (plugin.name, status, plugin.distribution, plugin.version, plugin.place)
    if status == "disabled":
        return PluginReport(*known)
    loaded = load(plugin)
    table = table_or_none(loaded)
    return PluginReport(*known, sorted(loaded.hooks), list(table.declared) if table else [], problem)
