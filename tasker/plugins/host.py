"""The plugins of one process and their background jobs."""

from __future__ import annotations

import asyncio
import logging
import random
import sys
import time
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping, Sequence
from threading import Thread
from typing import Any

from tasker.clock import BackoffPolicy
from tasker.dataclasses import dataclass
from tasker.plugins.found import Hook, Installed, Loaded, PluginChoice, installed, load, settings_table
from tasker.plugins.threads import NoAnswer, PluginQueueLimits, PluginThread, answer_of

Listener = Callable[[Any], None]
CONFIGURED = "tasker_configured"
STOP_SECONDS = 5.0
"""Time in seconds that an ending process waits for its plugins to receive the rest."""
_log = logging.getLogger("tasker.plugins")


@dataclass(frozen=True, slots=True)
class PluginState:
    """State of a plugin in a process. `off` is the reason why it is disabled; `failures` are counted by hook."""

    name: str
    delivered: int
    waiting: int
    dropped: int
    failures: Mapping[str, int]
    off: str


class PluginFailed(Exception):
    """Raised if a plugin has no answer; the text is the reason."""


class PluginHost:
    """Loaded plugins: functions by hook, by the plugin's name."""

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
        """Return a function that notifies the plugins with this hook.

        None if there are none, so that the caller can skip the work.
        """
        enqueues = [self._threads[name].enqueue for name, functions in self._hooks.items() if hook in functions]
        if not enqueues:
            return None

        def notify_all(value: Any) -> None:
            for enqueue in enqueues:
                enqueue(hook, value)

        return notify_all

    def notify(self, hook: str, value: Any) -> None:
        """Notify the plugins that have this hook."""
        if listener := self.listener(hook):
            listener(value)

    def having(self, hook: str) -> tuple[str, ...]:
        return tuple(name for name, functions in self._hooks.items() if hook in functions)

    def answers(self, hook: str, *values: Any) -> list[tuple[str, Any]]:
        """Return (plugin, answer) of the plugins with this hook that returned a value. They are called directly."""
        answers = ((name, self._answer(name, hook, values)) for name in self.having(hook))
        return [(name, answer) for name, answer in answers if answer is not None]

    def _answer(self, plugin: str, hook: str, values: Sequence[Any]) -> Any:
        try:
            return self.ask(plugin, hook, *values)
        except PluginFailed:
            return None

    def ask(self, plugin: str, hook: str, *values: Any) -> Any:
        """Return the answer of one plugin.

        Raises `PluginFailed`; the failure is counted, and a plugin that does not return in time is disabled.
        """
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
        except BaseException as error:  # includes sys.exit, which must not end the process
            account.failed(hook, error)
            raise PluginFailed(repr(error)) from error
        account.succeeded(hook)
        return answer

    def is_on(self, plugin: str) -> bool:
        return self._threads[plugin].account.is_on()

    def failed(self, plugin: str, hook: str, error: BaseException) -> None:
        """Count a failure of the plugin's own work under this hook."""
        self._threads[plugin].account.failed(hook, error)

    def succeeded(self, plugin: str, hook: str) -> None:
        """Reset the consecutive failures of the plugin's own work under this hook."""
        self._threads[plugin].account.succeeded(hook)

    def states(self) -> tuple[PluginState, ...]:
        return tuple(map(_state, self._threads.values()))

    async def settle(self, seconds: float = STOP_SECONDS) -> None:
        """Wait at most `seconds` until the plugins have received all notifications."""
        marks = [asyncio.wrap_future(thread.settled()) for thread in self._threads.values() if not thread.account.off]
        if marks:
            _, late = await asyncio.wait(marks, timeout=seconds)
            for future in late:
                future.cancel()

    def log_failures(self) -> None:
        """Log the failures, dropped calls and waiting calls of each plugin since the start."""
        for state in self.states():
            for hook, count in state.failures.items():
                _log.warning("plugin_failures plugin=%s hook=%s count=%s", state.name, hook, count)
            if state.dropped or state.waiting:
                message = "plugin_behind plugin=%s dropped=%s waiting=%s"
                _log.warning(message, state.name, state.dropped, state.waiting)


def _state(thread: PluginThread) -> PluginState:
    account = thread.account
    off = "" if account.is_on() else account.off
    return PluginState(thread.plugin, account.delivered, thread.waiting, account.dropped, dict(account.failures), off)


_made: list[tuple[tuple[str, ...], PluginChoice, PluginHost]] = []


def plugins_of(choice: PluginChoice) -> PluginHost:
    """Return the selected plugins, created once; one that fails to load is logged and ignored."""
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
    """Return the plugin's hooks after it received its settings, and the reason if it cannot be used."""
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
    """Pass the plugin its settings and return the hooks that it omits.

    Raises the plugin's exceptions, `TypeError` for an invalid answer and `ValueError` for the name of a hook that it
    lacks.
    """
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


HOOK = "tasker_background_jobs"
AGAIN = BackoffPolicy(1.0, 60.0, spread=0.2)
"""Pause before a job that raised or returned is restarted."""
Run = Callable[[], Coroutine[Any, Any, None]]


class BackgroundJobs:
    """Background jobs of one process. Only the end of the process waits for them, for at most five seconds."""

    def __init__(self, plugins: PluginHost) -> None:
        self._plugins = plugins
        self._parts: list[_Part] = []

    def start(self, database_url: str) -> None:
        """Call the plugins' hooks and start the jobs that they return."""
        for name, run in self._plugins.answers(HOOK, database_url):
            part = _Part(name, run, self._plugins)
            self._parts.append(part)
            part.start()

    async def stop(self) -> None:
        """Cancel the jobs and wait until they have ended."""
        parts, self._parts = self._parts, []
        for part in parts:
            part.cancel()
        if parts:
            await asyncio.to_thread(_join, parts)


class _Part:
    def __init__(self, plugin: str, run: Run, plugins: PluginHost) -> None:
        self._plugin, self._run, self._plugins = plugin, run, plugins
        self._loop, self._stopped = asyncio.new_event_loop(), asyncio.Event()
        self.thread = Thread(target=self._live, name=f"tasker plugin {plugin} in the background", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def cancel(self) -> None:
        if self.thread.is_alive():
            self._loop.call_soon_threadsafe(self._stopped.set)

    def _live(self) -> None:
        with asyncio.Runner(loop_factory=lambda: self._loop) as runner:
            runner.run(self._until_stopped())

    async def _until_stopped(self) -> None:
        running = asyncio.ensure_future(self._keep())
        await self._stopped.wait()
        running.cancel()
        await asyncio.wait([running])

    async def _keep(self) -> None:
        failures = 0
        while True:
            while not self._plugins.is_on(self._plugin):
                await asyncio.sleep(AGAIN.first)
            started = time.monotonic()
            try:
                await self._run()
            except asyncio.CancelledError:
                raise
            except BaseException as error:  # includes sys.exit, which must not end this thread
                if time.monotonic() - started > AGAIN.longest:
                    failures = 0
                    self._plugins.succeeded(self._plugin, HOOK)
                self._plugins.failed(self._plugin, HOOK, error)
            await asyncio.sleep(AGAIN.pause(failures, random.random()))
            failures += 1


def _join(parts: list[_Part]) -> None:
    for part in parts:
        part.thread.join(STOP_SECONDS)
