"""The plugins that are installed here, and what each of them has once it is imported.

Nothing here logs or waits: what cannot be used says why, to whoever looks at it.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import field
from functools import cache
from typing import TYPE_CHECKING, Any

from tasker.contracts.dataclasses import dataclass
from tasker.installed import offered

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    import pluggy

    from tasker.contracts.settings import Table

PLUGINS_GROUP = "tasker.plugins"
"""Plugins that are on as soon as they are installed."""
OPTIONAL_GROUP = "tasker.optional_plugins"
"""Plugins that are on where the configuration names them."""
RESERVED_NAMES = ("enabled", "disabled")
Hook = Callable[..., Any]
_left_out: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Installed:
    """A plugin as its distribution declares it; nothing of it is imported. `optional`: it must be named to be on."""

    name: str
    place: str
    optional: bool
    point: EntryPoint = field(repr=False)

    @property
    def distribution(self) -> str:
        """The name of the distribution that brings it; empty for one that says nothing of itself.

        Each time this is asked for, all its metadata are read: only those who show plugins do.
        """
        return self.point.dist.name if self.point.dist else ""

    @property
    def version(self) -> str:
        """The version of that distribution; read as `distribution` is."""
        return self.point.dist.version if self.point.dist else ""


@dataclass(frozen=True, slots=True, eq=False)
class Loaded:
    """A plugin that was imported: its functions by hook, or why it cannot be used."""

    plugin: Installed
    hooks: Mapping[str, Hook] = field(default_factory=dict)
    refusal: str | None = None


def installed() -> tuple[Installed, ...]:
    """All of them, by name."""
    return _installed(tuple(sys.path))


@cache
def _installed(path: tuple[str, ...]) -> tuple[Installed, ...]:
    groups = ((PLUGINS_GROUP, False), (OPTIONAL_GROUP, True))
    found = [
        Installed(point.name, point.value, optional, point) for group, optional in groups for point in offered(group)
    ]
    return tuple(sorted(found, key=lambda each: (each.name, each.place)))


def exclude_plugins(names: Iterable[str]) -> None:
    """Import none of these plugins for their settings, for as long as this process does not read others to leave out.

    Whoever reads the configuration says so before anything else is done with it.
    """
    global _left_out
    _left_out = frozenset(names)


def is_not_excluded() -> tuple[Installed, ...]:
    """Those that may be imported."""
    return tuple(each for each in installed() if each.name not in _left_out)


def load(plugin: Installed) -> Loaded:
    """Import it, once, and look at its hooks. Never raises but for an interruption."""
    return _load(plugin, tuple(sys.path))


@cache
def _load(plugin: Installed, path: tuple[str, ...]) -> Loaded:
    if sum(each.name == plugin.name for each in installed()) > 1:
        places = ", ".join(each.place for each in installed() if each.name == plugin.name)
        return Loaded(plugin, refusal=f"several plugins have this name: {places}")
    try:
        return Loaded(plugin, _hooks(plugin))
    except BaseException as error:  # whatever a stranger's module does when it is imported
        if isinstance(error, KeyboardInterrupt):
            raise
        return Loaded(plugin, refusal=str(error) or repr(error))


def unconfigured(plugin: Installed) -> Mapping[str, Hook]:
    """Return the hooks of a new instance of the plugin, without any settings; none where it cannot be used."""
    return {} if load(plugin).refusal else _hooks(plugin)


def _hooks(plugin: Installed) -> dict[str, Hook]:
    """Raises for a name or an argument that no hook has, and for what cannot be called."""
    import pluggy

    from tasker.hookspecs import PROJECT, Hooks

    found = plugin.point.load()
    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(Hooks)
    manager.register(found() if isinstance(found, type) else found, plugin.name)
    manager.check_pending()
    return dict(_functions(manager))


def _functions(manager: pluggy.PluginManager) -> Iterator[tuple[str, Hook]]:
    for (plugin,) in [manager.get_plugins()]:
        for caller in manager.get_hookcallers(plugin) or []:
            yield from ((caller.name, _plain(each)) for each in caller.get_hookimpls())


def _plain(implementation: pluggy.HookImpl) -> Hook:
    """The function with all arguments of its hook, of which it may leave some out."""
    function, wanted = implementation.function, len(implementation.argnames)
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise TypeError(f"{function.__name__} is no plain function: hooks are neither coroutines nor generators")
    return lambda *values: function(*values[:wanted])


@cache
def settings_table(loaded: Loaded) -> type[Table] | None:
    """The model of `[plugins.NAME]`; None when the plugin has no settings.

    Raises `TypeError` for what is no table, `ValueError` for a plugin whose name cannot be that of a table, and what
    its hook raises.
    """
    declare, name = loaded.hooks.get("tasker_settings"), loaded.plugin.name
    if declare is None:
        return None
    from tasker.contracts.settings import Table

    kind = declare()
    if not (isinstance(kind, type) and issubclass(kind, Table)):
        raise TypeError(
            f"tasker_settings() gives {kind!r}, and must give a subclass of tasker.contracts.settings.Table"
        )
    if not name.replace("-", "_").isidentifier() or name.startswith("_") or name in RESERVED_NAMES:
        raise ValueError("a plugin with settings is called by a-z 0-9 _ -, and neither `enabled` nor `disabled`")
    return kind


def table_or_none(loaded: Loaded) -> type[Table] | None:
    """The same, and None for what is declared wrongly: who loads the plugin is told of that."""
    try:
        return settings_table(loaded)
    except Exception:
        return None
