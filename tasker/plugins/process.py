"""The plugins of one process: loaded by its configuration, asked one by one, each kept from harming anything."""

from __future__ import annotations

import asyncio
import logging
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.plugins.asking import NoAnswer, answer_of
from tasker.plugins.choice import PluginChoice
from tasker.plugins.found import Hook, Installed, Loaded, installed, load, settings_table
from tasker.plugins.plugin_thread import PluginQueueLimits, PluginThread

Listener = Callable[[Any], None]
CONFIGURED = "tasker_configured"
STOP_SECONDS = 5.0
"""How long a process that ends waits for its plugins to hear the rest."""
_log = logging.getLogger("tasker.plugins")


@dataclass(frozen=True, slots=True)
class PluginState:
    """How a plugin does in a process. `off` says why it is switched off; `failures` are by hook."""

    name: str
    told: int
    waiting: int
    dropped: int
    failures: Mapping[str, int]
    off: str


class PluginFailed(Exception):
    """A plugin has no answer; the text says why."""


class PluginHost:
    """Plugins that were loaded: functions by hook, by the plugin's name."""

    def __init__(
        self,
        hooks: Mapping[str, Mapping[str, Hook]] | None = None,
        limits: PluginQueueLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._hooks, self._limits = dict(hooks or {}), limits or PluginQueueLimits()
        self._threads = {
            name: PluginThread(name, functions, self._limits, clock) for name, functions in self._hooks.items()
        }

    def listener(self, hook: str) -> Listener | None:
        """What tells the plugins that have this hook; None when none has, so that callers have nothing to do."""
        tells = [self._threads[name].tell for name, functions in self._hooks.items() if hook in functions]
        if not tells:
            return None

        def tell(value: Any) -> None:
            for each in tells:
                each(hook, value)

        return tell

    def tell(self, hook: str, value: Any) -> None:
        """Tell the plugins that have this hook, if any."""
        if tell := self.listener(hook):
            tell(value)

    def having(self, hook: str) -> tuple[str, ...]:
        """The plugins that have this hook, by name."""
        return tuple(name for name, functions in self._hooks.items() if hook in functions)

    def answers(self, hook: str, *values: Any) -> list[tuple[str, Any]]:
        """(plugin, answer) of those that have this hook and did answer. They are asked here and now."""
        found = ((name, self._answer(name, hook, values)) for name in self.having(hook))
        return [(name, answer) for name, answer in found if answer is not None]

    def _answer(self, plugin: str, hook: str, values: Sequence[Any]) -> Any:
        try:
            return self.ask(plugin, hook, *values)
        except PluginFailed:
            return None

    def ask(self, plugin: str, hook: str, *values: Any) -> Any:
        """The answer of one plugin. Raises `PluginFailed`, which is counted; who does not answer is switched off."""
        account = self._threads[plugin].account
        if not account.is_on():
            raise PluginFailed(f"the plugin is switched off: {account.off}")
        try:
            answer = answer_of(self._hooks[plugin][hook], values, self._limits.answer_seconds)
        except KeyboardInterrupt:
            raise
        except NoAnswer as error:
            account.failed(hook, error)
            account.switch_off(f"{hook} has not answered within {self._limits.answer_seconds:g} seconds")
            raise PluginFailed(str(error)) from error
        except BaseException as error:  # also sys.exit: what a plugin wants ends nothing of ours
            account.failed(hook, error)
            raise PluginFailed(repr(error)) from error
        account.succeeded(hook)
        return answer

    def is_on(self, plugin: str) -> bool:
        """Whether it is not switched off."""
        return self._threads[plugin].account.is_on()

    def failed(self, plugin: str, hook: str, error: BaseException) -> None:
        """What it does by itself under this hook has raised."""
        self._threads[plugin].account.failed(hook, error)

    def succeeded(self, plugin: str, hook: str) -> None:
        """Forget the failures in a row of what it does by itself under this hook."""
        self._threads[plugin].account.succeeded(hook)

    def states(self) -> tuple[PluginState, ...]:
        """How each of them does."""
        return tuple(map(_state, self._threads.values()))

    async def settle(self, seconds: float = STOP_SECONDS) -> None:
        """Wait until they have heard everything, at most so long."""
        marks = [asyncio.wrap_future(each.settled()) for each in self._threads.values() if not each.account.off]
        if marks:
            _, late = await asyncio.wait(marks, timeout=seconds)
            for each in late:
                each.cancel()

    def tell_failures(self) -> None:
        """Say in the log what has gone wrong with them since the start."""
        for state in self.states():
            for hook, count in state.failures.items():
                _log.warning("plugin_failures plugin=%s hook=%s count=%s", state.name, hook, count)
            if state.dropped or state.waiting:
                told = "plugin_behind plugin=%s dropped=%s waiting=%s"
                _log.warning(told, state.name, state.dropped, state.waiting)


def _state(thread: PluginThread) -> PluginState:
    account = thread.account
    off = "" if account.is_on() else account.off
    return PluginState(thread.plugin, account.told, thread.waiting, account.dropped, dict(account.failures), off)


_made: list[tuple[tuple[str, ...], PluginChoice, PluginHost]] = []


def plugins_of(choice: PluginChoice) -> PluginHost:
    """The plugins that are chosen. They are made once; one that cannot be is named in the log, and left out."""
    path = tuple(sys.path)
    for known_path, known_choice, plugins in _made:
        if (known_path, known_choice) == (path, choice):
            return plugins
    made = PluginHost(dict(_loaded(choice)))
    _made.append((path, choice, made))
    return made


def _loaded(choice: PluginChoice) -> Iterator[tuple[str, Mapping[str, Hook]]]:
    for plugin in installed():
        if choice.has(plugin):
            hooks, refusal = ready(plugin, choice)
            if refusal is None:
                yield plugin.name, hooks
            else:
                _log.error("plugin_refused plugin=%s (%s) reason=%s", plugin.name, plugin.place, refusal)


def ready(plugin: Installed, choice: PluginChoice) -> tuple[Mapping[str, Hook], str | None]:
    """The hooks that it has with its settings, which it was given; and why it cannot be used, if so."""
    loaded = load(plugin)
    if loaded.refusal is not None:
        return {}, loaded.refusal
    try:
        left_out = _configured(loaded, choice)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return {}, str(error) or repr(error)
    return {hook: function for hook, function in loaded.hooks.items() if hook not in left_out}, None


def _configured(loaded: Loaded, choice: PluginChoice) -> Collection[str]:
    """The hooks that it leaves out with its settings. Raises what it raises, and for names of hooks that it has not."""
    table = settings_table(loaded)
    if CONFIGURED not in loaded.hooks:
        return ()
    settings = choice.settings.get(loaded.plugin.name) or (table() if table else None)
    answer = answer_of(loaded.hooks[CONFIGURED], [settings])
    if answer is None:
        return ()
    if isinstance(answer, str) or not isinstance(answer, Collection):
        raise TypeError(f"{CONFIGURED}() gives {answer!r}, and must give the names of hooks to leave out, or None")
    if unknown := [name for name in answer if name not in loaded.hooks]:
        raise ValueError(f"{CONFIGURED}() leaves out {unknown[0]!r}, which is no hook of the plugin")
    return answer
