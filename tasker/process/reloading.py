"""Reload of the configuration of a running process at SIGHUP."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from tasker.errors import ConfigurationError, UsageError
from tasker.process.stopping import stopping_signals

if TYPE_CHECKING:
    from tasker.settings.model import Settings

_log = logging.getLogger("tasker.configuration")


class FromSettings(Protocol):
    """The parts of a process's configuration that are compared here."""

    @property
    def settings(self) -> Settings | None:
        """Return the settings with which the process was built; None without a configuration."""
        ...

    @property
    def backend_settings(self) -> Mapping[str, Mapping[str, Any]]:
        """Return the settings of each messaging backend, by name."""
        ...


C = TypeVar("C", bound=FromSettings)


class Reloading(Generic[C]):
    """Reload of the configuration: when called, reads it, passes it to `apply`, and logs the outcome.

    A configuration that cannot be read, has problems, or that `apply` refuses with a `UsageError`, changes nothing.
    Changed settings that need a restart are logged. `live` are the path prefixes of the settings that this process
    applies; None: all that any process can apply.
    """

    def __init__(
        self, configuration: C, read: Callable[[], C], apply: Callable[[C], None], live: tuple[str, ...] | None = None
    ) -> None:
        self._started, self._current = configuration, configuration
        self._read, self._apply, self._live = read, apply, live

    def __call__(self) -> None:
        """Read the configuration, apply it, and log the changes."""
        try:
            configuration = self._read()
        except ConfigurationError as error:
            _log.error("configuration_not_reloaded what was in force stays in force: %s", error)
            return
        if configuration.settings is None:
            _log.warning("configuration_not_reloaded this process was started without a configuration file")
            return
        from tasker.settings.catalogue import (
            is_live,  # with the models of all settings, which no process needs at its start
        )

        taken_over = [path for path in _changes(self._current, configuration) if self._concerns(path) and is_live(path)]
        waiting = [path for path in _changes(self._started, configuration) if not is_live(path)]
        try:
            self._apply(configuration)
        except UsageError as error:
            _log.error("configuration_not_reloaded what was in force stays in force: %s", error)
            return
        self._current = configuration
        _log.info("configuration_reloaded changed=%s", ",".join(taken_over) or "nothing")
        if waiting:
            _log.warning("configuration_needs_restart changed=%s", ",".join(waiting))

    def _concerns(self, path: str) -> bool:
        return self._live is None or path.startswith(self._live)


def _changes(before: FromSettings, after: FromSettings) -> Iterator[str]:
    from tasker.services.configuration.loading import differences

    if before.settings and after.settings:
        yield from (path for path, _, _ in differences(before.settings, after.settings))
        yield from _changed_tables(before, after, after.settings.common.queues)


def _changed_tables(before: FromSettings, after: FromSettings, modelled: object) -> Iterator[str]:
    """Return the changed tables of messaging backends that have no model."""
    for name in sorted({*before.backend_settings, *after.backend_settings}):
        if not hasattr(modelled, name) and before.backend_settings.get(name) != after.backend_settings.get(name):
            yield f"common.queues.{name}"


class ReloadSignals:
    """Handler of SIGHUP, except in a terminal, where SIGHUP stops the process.

    Call `listen` as soon as the process starts: a signal that arrives before `answer` is answered then.
    """

    number = signal.SIGHUP

    def __init__(self) -> None:
        self._early = False

    def listen(self) -> None:
        """Keep the signal from ending the process."""
        self._handle(lambda number, frame: setattr(self, "_early", True))

    def answer(self, reload: Callable[[], None]) -> None:
        """Call `reload` in the running event loop at every signal."""
        loop = asyncio.get_running_loop()
        self._handle(lambda number, frame: _soon(loop, reload))
        if self._early:
            _soon(loop, reload)

    def _handle(self, handler: Callable[[int, FrameType | None], None]) -> None:
        if self.number not in stopping_signals():
            signal.signal(self.number, handler)


def _soon(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    with contextlib.suppress(RuntimeError):  # the loop has ended
        loop.call_soon_threadsafe(call)
