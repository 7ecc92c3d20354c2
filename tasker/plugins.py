"""The plugins of this process: found by entry points, called one by one, each kept from harming anything."""

from __future__ import annotations

import inspect
import logging
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from tasker.installed import offered

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    import pluggy

PLUGINS_GROUP = "tasker.plugins"
Listener = Callable[[Any], None]
_log = logging.getLogger("tasker.plugins")


class Plugins:
    """Plugins that were loaded, by hook. `failures` counts what they raised, by plugin and hook."""

    def __init__(self, implementations: Sequence[tuple[str, str, Callable[..., Any]]] = ()) -> None:
        self._by_hook: dict[str, list[tuple[str, Callable[..., Any]]]] = {}
        for plugin, hook, function in implementations:
            self._by_hook.setdefault(hook, []).append((plugin, function))
        self.failures: Counter[tuple[str, str]] = Counter()

    def listener(self, hook: str) -> Listener | None:
        """What tells the plugins that have this hook; None when none has, so that callers have nothing to do."""
        if hook not in self._by_hook:
            return None

        def tell(value: Any) -> None:
            self.answers(hook, value)

        return tell

    def tell(self, hook: str, value: Any) -> None:
        """Tell the plugins that have this hook, if any."""
        self.answers(hook, value)

    def answers(self, hook: str, *values: Any) -> list[tuple[str, Any]]:
        """(plugin, answer) of those that have this hook and did not raise."""
        found = ((name, self._answer(name, hook, function, values)) for name, function in self._by_hook.get(hook, ()))
        return [(name, answer) for name, answer in found if answer is not None]

    def _answer(self, plugin: str, hook: str, function: Callable[..., Any], values: Sequence[Any]) -> Any:
        try:
            return function(*values)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also sys.exit: what a plugin wants ends nothing of ours
            self.failures[plugin, hook] += 1
            if self.failures[plugin, hook] == 1:
                _log.exception("plugin_failed plugin=%s hook=%s error=%r; more is only counted", plugin, hook, error)
            return None

    def tell_failures(self) -> None:
        """Say in the log how often plugins have failed since the start."""
        for (plugin, hook), count in self.failures.items():
            _log.warning("plugin_failures plugin=%s hook=%s count=%s", plugin, hook, count)


def installed_plugins() -> Plugins:
    """The plugins of this process. They are loaded once; one that cannot be is named in the log, and left out."""
    return _loaded(tuple(sys.path))


@cache
def _loaded(path: tuple[str, ...]) -> Plugins:
    points = offered(PLUGINS_GROUP)
    return Plugins(list(_implementations(points))) if points else Plugins()


def _implementations(points: Sequence[EntryPoint]) -> Iterator[tuple[str, str, Callable[..., Any]]]:
    import pluggy

    from tasker.hookspecs import PROJECT, Hooks

    manager = pluggy.PluginManager(PROJECT)
    manager.add_hookspecs(Hooks)
    for point in points:
        try:
            yield from _checked(manager, point)
        except BaseException as error:  # whatever a stranger's module does when it is imported
            if isinstance(error, KeyboardInterrupt):
                raise
            _log.error("plugin_refused plugin=%s (%s) reason=%s", point.name, point.value, str(error) or repr(error))


def _checked(manager: pluggy.PluginManager, point: EntryPoint) -> list[tuple[str, str, Callable[..., Any]]]:
    """The hooks of one plugin. Raises for a name or an argument that there is not, and for what cannot be called."""
    loaded = point.load()
    plugin = loaded() if isinstance(loaded, type) else loaded
    manager.register(plugin, point.name)
    try:
        manager.check_pending()
        callers = manager.get_hookcallers(plugin) or []
        found = [(caller.name, each) for caller in callers for each in caller.get_hookimpls() if each.plugin is plugin]
        return [(point.name, name, _plain(each)) for name, each in found]
    except BaseException:
        manager.unregister(plugin)
        raise


def _plain(implementation: pluggy.HookImpl) -> Callable[..., Any]:
    """The function with all arguments of its hook, of which it may leave some out."""
    function, wanted = implementation.function, len(implementation.argnames)
    if inspect.iscoroutinefunction(function) or inspect.isgeneratorfunction(function):
        raise TypeError(f"{function.__name__} is no plain function: hooks are neither coroutines nor generators")
    return lambda *values: function(*values[:wanted])
