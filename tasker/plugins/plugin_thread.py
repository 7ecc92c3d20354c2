"""How one plugin is told of what happens: in a thread of its own, behind a bounded queue. Nobody waits for it."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import field
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.hook_arguments import CaughtUp
from tasker.plugins.asking import ANSWER_SECONDS

REST_SECONDS = 0.02
"""How long a thread that has heard everything leaves what comes next waiting: being woken for each call costs more
than the call, whoever tells too."""
_log = logging.getLogger("tasker.plugins")
CAUGHT_UP = "tasker_caught_up"
Call = tuple[str, Any]
"""A hook and its argument, or "" and a `Future` that is done when its turn has come."""


@dataclass(frozen=True, slots=True)
class Limits:
    """When a plugin is switched off, and how much may wait for it."""

    waiting: int = 10_000
    """Calls that wait at most; what comes while so many wait is dropped and counted."""
    failures: int = 10
    """A hook that raises so often in a row switches its plugin off."""
    hang_seconds: float = 30.0
    """A call that takes longer switches the plugin off."""
    answer_seconds: float = ANSWER_SECONDS
    """A hook whose answer counts and that takes longer switches the plugin off."""


@dataclass(slots=True)
class Account:
    """What one plugin has come to since the start. `off` says why it is switched off, and is empty while it is not."""

    told: int = 0
    dropped: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    in_a_row: Counter[str] = field(default_factory=Counter)
    off: str = ""

    def failed(self, plugin: str, hook: str, error: BaseException, at_most: int) -> None:
        """A function raised: told once for each hook, with the stack."""
        self.failures[hook] += 1
        self.in_a_row[hook] += 1
        if self.failures[hook] == 1:
            told = "plugin_failed plugin=%s hook=%s error=%r; more is only counted"
            _log.error(told, plugin, hook, error, exc_info=error)
        if self.in_a_row[hook] >= at_most:
            self.switch_off(plugin, f"{hook} has failed {at_most} times in a row")

    def succeeded(self, hook: str) -> None:
        """A function returned."""
        self.told += 1
        if self.in_a_row:
            del self.in_a_row[hook]

    def switch_off(self, plugin: str, reason: str) -> None:
        """Call it no more in this process."""
        if not self.off:
            self.off = reason
            _log.error("plugin_switched_off plugin=%s reason=%s; it hears nothing more until a restart", plugin, reason)


class PluginThread:
    """Tells one plugin of what happens. `tell` never waits and never raises; it may be called by any thread."""

    def __init__(
        self,
        plugin: str,
        functions: Mapping[str, Callable[..., Any]],
        limits: Limits = Limits(),  # noqa: B008  # frozen
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.plugin, self.account = plugin, Account()
        self._functions, self._limits, self._clock = functions, limits, clock
        self._calls: SimpleQueue[Call] = SimpleQueue()
        self._called_at: float | None = None
        self._heard = 0
        self._thread: Thread | None = None
        self._lock = Lock()

    @property
    def waiting(self) -> int:
        """Calls that wait for their turn."""
        return self._calls.qsize()

    def tell(self, hook: str, value: Any) -> None:
        """Call its function in its thread, when what came before has been told."""
        if self.account.off or self._hangs():
            return
        if self._calls.qsize() >= self._limits.waiting:
            self._drop(hook)
            return
        self._put((hook, value))

    def settled(self) -> Future[None]:
        """Done when all that was told so far has been heard."""
        done: Future[None] = Future()
        if self._thread is None:
            done.set_result(None)
        else:
            self._put(("", done))
        return done

    def _put(self, call: Call) -> None:
        self._calls.put(call)
        if self._thread is None:
            with self._lock:
                if self._thread is None:
                    self._thread = Thread(target=self._hear, name=f"tasker plugin {self.plugin}", daemon=True)
                    self._thread.start()

    def _hangs(self) -> bool:
        since = self._called_at
        if since is None or self._clock() - since <= self._limits.hang_seconds:
            return False
        self.account.switch_off(self.plugin, f"a call has not returned for {self._limits.hang_seconds:g} seconds")
        return True

    def _drop(self, hook: str) -> None:
        self.account.dropped += 1
        if self.account.dropped == 1:
            told = (
                "plugin_overflow plugin=%s hook=%s waiting=%s; it is too slow, what does not fit is dropped and counted"
            )
            _log.warning(told, self.plugin, hook, self._limits.waiting)

    def _hear(self) -> None:
        while True:
            hook, value = self._calls.get()
            if hook:
                self._heard += 1
                self._call(hook, value)
            else:
                self._caught_up()
                if value.set_running_or_notify_cancel():  # else nobody waits for it any more
                    value.set_result(None)
            if not self._calls.qsize():
                self._caught_up()
                time.sleep(REST_SECONDS)

    def _caught_up(self) -> None:
        if self._heard and CAUGHT_UP in self._functions:
            self._call(CAUGHT_UP, CaughtUp(self._heard))
        self._heard = 0

    def _call(self, hook: str, value: Any) -> None:
        if self.account.off:
            return
        self._called_at = self._clock()
        try:
            self._functions[hook](value)
        except BaseException as error:  # also sys.exit: what a plugin wants ends nothing of ours
            self.account.failed(self.plugin, hook, error, self._limits.failures)
        else:
            self.account.succeeded(hook)
        finally:
            self._called_at = None
