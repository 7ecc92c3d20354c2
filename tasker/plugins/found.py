"""Installed plugins, and which of them a process uses.

This module neither logs nor waits: a plugin that cannot be used carries the reason for its caller.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Any

from tasker.dataclasses import dataclass
from tasker.installed import offered

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    import pluggy

    from tasker.settings.table import Table

PLUGINS_GROUP = "tasker.plugins"
"""Entry-point group of plugins that are active as soon as they are installed."""
OPTIONAL_GROUP = "tasker.optional_plugins"
"""Entry-point group of plugins that are active if the configuration names them."""
RESERVED_NAMES = ("enabled", "disabled")
Hook = Callable[..., Any]
_left_out: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Installed:
    """Plugin as its distribution declares it, not imported. An `optional` one is active only if it is named."""

    name: str
    place: str
    optional: bool
    point: EntryPoint = field(repr=False)

    @property
    def distribution(self) -> str:
        """Name of the plugin's distribution; empty if it has no metadata.

        Each access reads all metadata of the distribution, so only commands that list plugins use it.
        """
        return self.point.dist.name if self.point.dist else ""

    @property
    def version(self) -> str:
        """Version of the distribution; as expensive to read as `distribution`."""
        return self.point.dist.version if self.point.dist else ""


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """Imported plugin: its functions by hook, or the reason why it cannot be used."""

    plugin: Installed
    hooks: Mapping[str, Hook] = field(default_factory=dict)
    refusal: str | None = None


def installed() -> tuple[Installed, ...]:
    """Return all installed plugins, sorted by name."""
    return _installed(tuple(sys.path))


@cache
def _installed(path: tuple[str, ...]) -> tuple[Installed, ...]:
    groups = ((PLUGINS_GROUP, False), (OPTIONAL_GROUP, True))
    plugins = [
        Installed(point.name, point.value, optional, point) for group, optional in groups for point in offered(group)
    ]
    return tuple(sorted(plugins, key=lambda plugin: (plugin.name, plugin.place)))


def exclude_plugins(names: Iterable[str]) -> None:
    """Exclude these plugins from imports for their settings, until the next call.

    The reader of a configuration calls it before the configuration is used.
    """
    global _left_out
    _left_out = frozenset(names)


def is_not_excluded() -> tuple[Installed, ...]:
    """Return the plugins that may be imported."""
    return tuple(plugin for plugin in installed() if plugin.name not in _left_out)


def load(plugin: Installed) -> Loaded:
    """Import the plugin, once, and collect its hooks. Raises nothing but `KeyboardInterrupt`."""
    return _load(plugin, tuple(sys.path))


@cache
def _load(plugin: Installed, path: tuple[str, ...]) -> Loaded:
    if sum(other.name == plugin.name for other in installed()) > 1:
        places = ", ".join(other.place for other in installed() if other.name == plugin.name)
        return Loaded(plugin, refusal=f"several plugins have this name: {places}")
    try:
        return Loaded(plugin, _hooks(plugin))
    except BaseException as error:  # a third-party module may raise anything when it is imported
        if isinstance(error, KeyboardInterrupt):
            raise
        return Loaded(plugin, refusal=str(error) or repr(error))


def unconfigured(plugin: Installed) -> Mapping[str, Hook]:
    """Return the hooks of a new instance of the plugin without settings; empty if it cannot be used."""
    return {} if load(plugin).refusal else _hooks(plugin)


def _hooks(plugin: Installed) -> dict[str, Hook]:
    """Return the plugin's hooks. Raises for an unknown hook or argument, and for a hook that is not callable."""
    import pluggy

    from tasker.plugins.hooks import PROJECT, Hooks

    plugin_object = plugin.point.load()
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(Hooks)
    manager.register(plugin_object() if isinstance(plugin_object, type) else plugin_object, plugin.name)
    manager.check_pending()
    return dict(_functions(manager))


def _functions(manager: pluggy.PluginManager) -> Iterator[tuple[str, Hook]]:
    for (plugin,) in [manager.get_plugins()]:
        for caller in manager.get_hookcallers(plugin) or []:
            yield from ((caller.name, _plain(implementation)) for implementation in caller.get_hookimpls())


def _plain(implementation: pluggy.HookImpl) -> Hook:
    """Wrap the function to accept all arguments of its hook, of which it may omit some."""
    function, argument_count = implementation.function, len(implementation.argnames)
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise TypeError(f"{function.__name__} is no plain function: hooks are neither coroutines nor generators")
    return lambda *values: function(*values[:argument_count])


@cache
def settings_table(loaded: Loaded) -> type[Table] | None:
    """Return the model of `[plugins.NAME]`; None if the plugin has no settings.

    Raises `TypeError` for a value that is not a table, `ValueError` for a plugin name that cannot name a table, and the
    exceptions of the plugin's hook.
    """
    declare, name = loaded.hooks.get("tasker_settings"), loaded.plugin.name
    if declare is None:
        return None
    from tasker.settings.table import Table

    kind = declare()
    if not (isinstance(kind, type) and issubclass(kind, Table)):
        raise TypeError(f"tasker_settings() gives {kind!r}, and must return a subclass of tasker.settings.table.Table")
    if not name.replace("-", "_").isidentifier() or name.startswith("_") or name in RESERVED_NAMES:
        raise ValueError("a plugin with settings is called by a-z 0-9 _ -, and neither `enabled` nor `disabled`")
    return kind


def table_or_none(loaded: Loaded) -> type[Table] | None:
    """Return the model of `[plugins.NAME]`; None if there is none or it is invalid.

    An invalid model is reported when the plugin is loaded.
    """
    try:
        return settings_table(loaded)
    except Exception:
        return None


@dataclass(frozen=True, slots=True)
class PluginChoice:
    """`[plugins]` of the configuration. Without it, the non-optional plugins are active with default settings.

    `settings` holds the tables that set something, by plugin.
    """

    enabled: tuple[str, ...] = ()
    disabled: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def has(self, plugin: Installed) -> bool:
        """Return True if the process loads the plugin."""
        return plugin.name not in self.disabled and (plugin.name in self.enabled or not plugin.optional)
