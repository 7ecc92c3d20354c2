"""Checks of the settings of installed backends and plugins."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from tasker.errors import TaskerError
from tasker.installed import backend_modules, installed_backends
from tasker.messaging.backends import load_backend
from tasker.plugins.found import Installed, PluginChoice, installed, load, settings_table
from tasker.services.configuration.sources import ConfigurationLayer, Variables, merged
from tasker.settings.addresses import BackendSettings
from tasker.settings.catalogue import tables
from tasker.settings.check import SettingProblem
from tasker.settings.installed_tables import declared_table
from tasker.settings.model import Settings
from tasker.settings.nested import find
from tasker.settings.queues import QueueSettings
from tasker.settings.sources import Substitution
from tasker.settings.table import Substituted

BACKEND_TABLE = "common.queues"
CHOSEN = f"{BACKEND_TABLE}.backend"


def backend_tables(values: Mapping[str, Any]) -> dict[str, BackendSettings]:
    """Return the tables below `common.queues` named after an installed backend without a model, by backend."""
    queues = find(values, BACKEND_TABLE, {})
    known = {*QueueSettings.declared, *(path.removeprefix(f"{BACKEND_TABLE}.") for path in tables())}
    unknown = {name: value for name, value in queues.items() if name not in known} if queues else {}
    installed = installed_backends() if unknown else []
    return {name: value for name, value in unknown.items() if name in installed and isinstance(value, Mapping)}


def backend_problems(
    tables: Mapping[str, BackendSettings], place_of: Callable[[str], str | None]
) -> list[SettingProblem]:
    """Return the problems that the backends' own `create` reports for these tables. It opens no connection."""
    return [problem for name, settings in tables.items() if (problem := _problem(name, settings, place_of))]


def choice_problems(values: Mapping[str, Any], place_of: Callable[[str], str | None]) -> list[SettingProblem]:
    """Return the problems of the chosen backend: not installed, or an invalid declaration of its settings.

    Its package may still lack a dependency, which `load_backend` reports.
    """
    name = find(values, CHOSEN)
    if not isinstance(name, str) or not name:
        return []
    if name in (installed := installed_backends()):
        return _declaration_problems(name, place_of)
    near = get_close_matches(name, installed, n=1)
    fix = f"Did you mean {near[0]}?" if near else "Choose one of them, or install the package that brings it"
    issue = f"No messaging backend of that name; installed: {', '.join(installed)}"
    return [SettingProblem(CHOSEN, name, issue, fix, place_of(CHOSEN))]


def _declaration_problems(name: str, place_of: Callable[[str], str | None]) -> list[SettingProblem]:
    try:
        declared_table(name, dict(backend_modules()).get(name))
    except Exception as error:  # a third-party declaration may raise anything
        fix = getattr(error, "hint", None) or "See tasker.messaging.port"
        return [SettingProblem(CHOSEN, name, str(error), fix, place_of(CHOSEN))]
    return []


def _problem(name: str, given: BackendSettings, place_of: Callable[[str], str | None]) -> SettingProblem | None:
    path = f"{BACKEND_TABLE}.{name}"
    try:
        load_backend(name, given)
    except TaskerError as error:
        return SettingProblem(path, given, error.message, error.hint or "See the error of the backend", place_of(path))
    except (TypeError, ValueError) as error:  # of a backend that leaves the check to its types
        return SettingProblem(
            path, given, f"The backend refuses it: {error}", "See the error of the backend", place_of(path)
        )
    return None


PLUGIN_TABLE = "plugins"
ENABLED, DISABLED, DISABLED_VARIABLE = f"{PLUGIN_TABLE}.enabled", f"{PLUGIN_TABLE}.disabled", "TASKER_PLUGINS_DISABLED"
PlaceOf = Callable[[str], str | None]


def switched_off(files: list[ConfigurationLayer], variables: Variables) -> tuple[str, ...]:
    """Return the plugins that must not be imported; known before anything is checked."""
    written = find(Substitution(variables).tables(merged(files)), DISABLED)
    disabled = Substituted(variables(DISABLED_VARIABLE) or "") if written is None else written
    entries = disabled.split(",") if isinstance(disabled, str) else disabled if isinstance(disabled, list) else ()
    return tuple(entry.strip() for entry in entries if isinstance(entry, str))


def unread_tables(values: Mapping[str, Any]) -> frozenset[str]:
    """Return the dotted paths of the tables of plugins that cannot be read; their contents are not checked."""
    plugin_tables = find(values, PLUGIN_TABLE)
    if not isinstance(plugin_tables, Mapping):
        return frozenset()
    unread = {
        *_list_of(plugin_tables.get("disabled")),
        *(plugin.name for plugin in installed() if plugin.name in plugin_tables and not _has_model(plugin)),
    }
    return frozenset(f"{PLUGIN_TABLE}.{name}" for name in plugin_tables if name in unread)


def _list_of(value: Any) -> list[str]:
    if isinstance(value, Substituted):
        return [part.strip() for part in value.split(",")]
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []


def _has_model(plugin: Installed) -> bool:
    try:
        return settings_table(load(plugin)) is not None
    except Exception:
        return False


def plugin_problems(settings: Settings, files: Mapping[str, Any], place_of: PlaceOf) -> list[SettingProblem]:
    """Return problems of unknown plugin names and unused tables. `files` are the values given in files."""
    chosen = PluginChoice(settings.plugins.enabled, settings.plugins.disabled)
    names = sorted({plugin.name for plugin in installed()})
    unknown = [_unknown(path, name, names, place_of(path)) for path, name in _named(chosen) if name not in names]
    both = [
        SettingProblem(ENABLED, name, f"{name} is in {DISABLED} too", "Keep only one of them", place_of(ENABLED))
        for name in chosen.enabled
        if name in chosen.disabled
    ]
    return [*unknown, *both, *_useless(chosen, files, place_of)]


def is_of_absent_plugin(problem: SettingProblem) -> bool:
    """Return True for a problem of a plugin that is not installed here."""
    names = {plugin.name for plugin in installed()}
    if problem.path in (ENABLED, DISABLED):
        return problem.value not in names
    root, _, rest = problem.path.partition(".")
    return root == PLUGIN_TABLE and rest.partition(".")[0] not in names


def _named(chosen: PluginChoice) -> Iterator[tuple[str, str]]:
    yield from ((ENABLED, name) for name in chosen.enabled)
    yield from ((DISABLED, name) for name in chosen.disabled)


def _unknown(path: str, name: str, names: list[str], place: str | None) -> SettingProblem:
    near = get_close_matches(name, names, 1)
    fix = f"Did you mean {near[0]}?" if near else "Install the package that brings it, or remove it"
    return SettingProblem(path, name, f"No plugin of that name; installed: {', '.join(names) or 'none'}", fix, place)


def _useless(chosen: PluginChoice, files: Mapping[str, Any], place_of: PlaceOf) -> Iterator[SettingProblem]:
    """Yield tables of plugins that are off, cannot be loaded, or have no settings."""
    plugin_tables = find(files, PLUGIN_TABLE, {})
    for plugin in installed() if isinstance(plugin_tables, Mapping) else ():
        path = f"{PLUGIN_TABLE}.{plugin.name}"
        if plugin.name not in plugin_tables or plugin.name in chosen.disabled:
            continue
        if not chosen.has(plugin):
            yield SettingProblem(
                path, plugin_tables[plugin.name], "This plugin is not on", f"Add it to {ENABLED}", place_of(path)
            )
        elif issue := _unreadable(plugin):
            fix = "See: tasker plugin show " + plugin.name
            yield SettingProblem(path, plugin_tables[plugin.name], issue, fix, place_of(path))


def _unreadable(plugin: Installed) -> str | None:
    loaded = load(plugin)
    if loaded.refusal is not None:
        return f"The plugin cannot be loaded: {loaded.refusal}"
    try:
        return "This plugin has no settings" if settings_table(loaded) is None else None
    except Exception as error:  # a third-party declaration may raise anything
        return f"The settings declared by the plugin are invalid: {error}"
