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

from tasker.contracts.backoff import BackoffPolicy
from tasker.contracts.dataclasses import dataclass
from tasker.contracts.hook_arguments import BatchDelivered
from tasker.errors import BackendUnavailable, DatabaseError
from tasker.plugins.asking import ANSWER_SECONDS

PAUSES = BackoffPolicy(60.0, 1800.0)
"""How long a plugin that was switched off is left alone."""
REST_SECONDS = 0.02
"""How long a thread that has heard everything leaves what comes next waiting: being woken for each call costs more
than the call, whoever tells too."""
_log = logging.getLogger("tasker.plugins")
CAUGHT_UP = "tasker_batch_delivered"
Call = tuple[str, Any]
"""A hook and its argument, or "" and a `Future` that is done when its turn has come."""


@dataclass(frozen=True, slots=True)
class PluginQueueLimits:
    """When a plugin is switched off, and how much may wait for it."""

    waiting: int = 10_000
    """Calls that wait at most; what comes while so many wait is dropped and counted."""
    failures: int = 10
    """A hook that raises so often in a row switches its plugin off."""
    hang_seconds: float = 30.0
    """A call that takes longer switches the plugin off."""
    answer_seconds: float = ANSWER_SECONDS
    """A hook whose answer counts and that takes longer switches the plugin off."""
    pauses: BackoffPolicy = PAUSES
    """How long it is switched off: longer each time until a call succeeds."""


@dataclass(slots=True)
class PluginDelivery:
    """Successes and failures of one plugin since the start.

    `off` is the reason why it is switched off, and empty while it is on.
    """

    plugin: str
    limits: PluginQueueLimits
    clock: Callable[[], float]
    told: int = 0
    dropped: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    in_a_row: Counter[str] = field(default_factory=Counter)
    off: str = ""
    off_until: float = 0.0
    pauses: int = 0
    lacking: set[str] = field(default_factory=set)

    def is_on(self) -> bool:
        """Return whether it may be called. A pause that is over ends here: one more failure begins the next one."""
        if self.off and self.clock() >= self.off_until:
            self.off = ""
            _log.info("plugin_switched_on plugin=%s; its pause is over", self.plugin)
        return not self.off

    def failed(self, hook: str, error: BaseException) -> None:
        """Count a function that raised, and log the first for each hook with its stack.

        An outage of the database or the broker is logged once for each hook and not counted.
        """
        if is_outage(error):
            if hook not in self.lacking:
                self.lacking.add(hook)
                logged = "plugin_lacks_database plugin=%s hook=%s error=%r; such failures do not count against it"
                _log.warning(logged, self.plugin, hook, error)
            return
        self.failures[hook] += 1
        self.in_a_row[hook] += 1
        if self.failures[hook] == 1:
            told = "plugin_failed plugin=%s hook=%s error=%r; more is only counted"
            _log.error(told, self.plugin, hook, error, exc_info=error)
        if self.in_a_row[hook] >= self.limits.failures:
            self.switch_off(f"{hook} has failed {self.limits.failures} times in a row")

    def succeeded(self, hook: str) -> None:
        """Forget the failures in a row of a function that returned."""
        self.lacking.discard(hook)
        if self.in_a_row:
            self.in_a_row.pop(hook, None)
        if self.pauses and not self.in_a_row:
            self.pauses = 0

    def switch_off(self, reason: str) -> None:
        """Call it no more until a pause is over."""
        if not self.off:
            pause = self.limits.pauses.pause(self.pauses)
            self.off_until, self.off = self.clock() + pause, reason
            self.pauses += 1
            logged = "plugin_disabled plugin=%s reason=%s; it is tried again in %g s"
            _log.error(logged, self.plugin, reason, pause)


def is_outage(error: BaseException) -> bool:
    """Return whether the database or the broker is the cause: of each part of a group, or of an error's `__cause__`."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_outage, error.exceptions))
    cause = error.__cause__
    return isinstance(error, (DatabaseError, BackendUnavailable)) or (cause is not None and is_outage(cause))


class PluginThread:
    """Tells one plugin of what happens. `tell` never waits and never raises; it may be called by any thread."""

    def __init__(
        self,
        plugin: str,
        functions: Mapping[str, Callable[..., Any]],
        limits: PluginQueueLimits = PluginQueueLimits(),  # noqa: B008  # frozen
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.plugin, self.account = plugin, PluginDelivery(plugin, limits, clock)
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
        if not self.account.is_on() or self._hangs():
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
        self.account.switch_off(f"a call has not returned for {self._limits.hang_seconds:g} seconds")
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
            self._call(CAUGHT_UP, BatchDelivered(self._heard))
        self._heard = 0

    def _call(self, hook: str, value: Any) -> None:
        if self.account.off:
            return
        self._called_at = self._clock()
        try:
            self._functions[hook](value)
        except BaseException as error:  # also sys.exit: what a plugin wants ends nothing of ours
            self.account.failed(hook, error)
        else:
            self.account.told += 1
            self.account.succeeded(hook)
        finally:
            self._called_at = None
