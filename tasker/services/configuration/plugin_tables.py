"""Checks of `[plugins]` beyond the settings models: plugins that are missing, off, or cannot be loaded."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from tasker.contracts.settings import Substituted
from tasker.plugins.choice import PluginChoice
from tasker.plugins.found import Installed, installed, load, settings_table
from tasker.services.configuration.sources import ConfigurationLayer, Variables, merged
from tasker.settings.layering import find
from tasker.settings.model import Settings
from tasker.settings.problems import SettingProblem
from tasker.settings.substitution import Substitution

TABLE = "plugins"
ENABLED, DISABLED, DISABLED_VARIABLE = f"{TABLE}.enabled", f"{TABLE}.disabled", "TASKER_PLUGINS_DISABLED"
PlaceOf = Callable[[str], str | None]


def switched_off(files: list[ConfigurationLayer], variables: Variables) -> tuple[str, ...]:
    """Return the plugins that must not be imported; known before anything is checked."""
    written = find(Substitution(variables).tables(merged(files)), DISABLED)
    found = Substituted(variables(DISABLED_VARIABLE) or "") if written is None else written
    entries = found.split(",") if isinstance(found, str) else found if isinstance(found, list) else ()
    return tuple(each.strip() for each in entries if isinstance(each, str))


def unread_tables(values: Mapping[str, Any]) -> frozenset[str]:
    """Return the dotted paths of the tables of plugins that cannot be read; their contents are not checked."""
    given = find(values, TABLE)
    if not isinstance(given, Mapping):
        return frozenset()
    unread = {
        *_list_of(given.get("disabled")),
        *(each.name for each in installed() if each.name in given and not _has_model(each)),
    }
    return frozenset(f"{TABLE}.{name}" for name in given if name in unread)


def _list_of(value: Any) -> list[str]:
    if isinstance(value, Substituted):
        return [part.strip() for part in value.split(",")]
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _has_model(plugin: Installed) -> bool:
    try:
        return settings_table(load(plugin)) is not None
    except Exception:
        return False


def plugin_problems(settings: Settings, files: Mapping[str, Any], place_of: PlaceOf) -> list[SettingProblem]:
    """Return problems of unknown plugin names and unused tables. `files` are the values given in files."""
    chosen = PluginChoice(settings.plugins.enabled, settings.plugins.disabled)
    names = sorted({each.name for each in installed()})
    unknown = [_unknown(path, name, names, place_of(path)) for path, name in _named(chosen) if name not in names]
    both = [
        SettingProblem(ENABLED, name, f"{name} is in {DISABLED} too", "Keep only one of them", place_of(ENABLED))
        for name in chosen.enabled
        if name in chosen.disabled
    ]
    return [*unknown, *both, *_useless(chosen, files, place_of)]


def is_of_absent_plugin(problem: SettingProblem) -> bool:
    """Return True for a problem of a plugin that is not installed here."""
    names = {each.name for each in installed()}
    if problem.path in (ENABLED, DISABLED):
        return problem.value not in names
    root, _, rest = problem.path.partition(".")
    return root == TABLE and rest.partition(".")[0] not in names


def _named(chosen: PluginChoice) -> Iterator[tuple[str, str]]:
    yield from ((ENABLED, name) for name in chosen.enabled)
    yield from ((DISABLED, name) for name in chosen.disabled)


def _unknown(path: str, name: str, names: list[str], place: str | None) -> SettingProblem:
    near = get_close_matches(name, names, 1)
    fix = f"Did you mean {near[0]}?" if near else "Install the package that brings it, or remove it"
    return SettingProblem(path, name, f"No plugin of that name; installed: {', '.join(names) or 'none'}", fix, place)


def _useless(chosen: PluginChoice, files: Mapping[str, Any], place_of: PlaceOf) -> Iterator[SettingProblem]:
    """Yield tables of plugins that are off, cannot be loaded, or have no settings."""
    given = find(files, TABLE, {})
    for plugin in installed() if isinstance(given, Mapping) else ():
        path = f"{TABLE}.{plugin.name}"
        if plugin.name not in given or plugin.name in chosen.disabled:
            continue
        if not chosen.has(plugin):
            yield SettingProblem(
                path, given[plugin.name], "This plugin is not on", f"Add it to {ENABLED}", place_of(path)
            )
        elif issue := _unreadable(plugin):
            fix = "See: tasker plugin show " + plugin.name
            yield SettingProblem(path, given[plugin.name], issue, fix, place_of(path))


def _unreadable(plugin: Installed) -> str | None:
    loaded = load(plugin)
    if loaded.refusal is not None:
        return f"The plugin cannot be loaded: {loaded.refusal}"
    try:
        return "This plugin has no settings" if settings_table(loaded) is None else None
    except Exception as error:  # a third-party declaration may raise anything
        return f"The settings declared by the plugin are invalid: {error}"
