"""One thread and one bounded queue for each plugin; calls have a deadline."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import field
from queue import SimpleQueue
from threading import Lock, Thread
from typing import Any

from tasker.clock import BackoffPolicy
from tasker.dataclasses import dataclass
from tasker.errors import BackendUnavailable, DatabaseError
from tasker.plugins.hook_arguments import BatchDelivered

ANSWER_SECONDS = 5.0
"""Time limit of a call in seconds."""


class NoAnswer(Exception):
    """Raised if the function does not return in time; its thread is abandoned."""


def answer_of(function: Callable[..., Any], values: Sequence[Any] = (), seconds: float = ANSWER_SECONDS) -> Any:
    """Return the result of a function called in a thread of its own.

    Raises the function's exception, or `NoAnswer` after `seconds`.
    """
    answer: Future[Any] = Future()

    def call() -> None:
        try:
            answer.set_result(function(*values))
        except BaseException as error:  # includes sys.exit, which must not end the caller
            answer.set_exception(error)

    Thread(target=call, name="tasker asks a plugin", daemon=True).start()
    try:
        return answer.result(seconds)
    except TimeoutError:
        if answer.done():  # raised by the function itself
            raise
        raise NoAnswer(f"it has not answered within {seconds:g} seconds") from None


PAUSES = BackoffPolicy(60.0, 1800.0)
"""Time for which a plugin stays disabled."""
REST_SECONDS = 0.02
"""Seconds for which an idle thread lets new calls wait.

Waking it for each call costs more than the call, for the notifying thread too.
"""
_log = logging.getLogger("tasker.plugins")
BATCH_DELIVERED = "tasker_batch_delivered"
Call = tuple[str, Any]
"""A hook and its argument, or "" and a `Future` that is completed when its turn has come."""


@dataclass(frozen=True, slots=True)
class PluginQueueLimits:
    """Limits of a plugin's queue, and the conditions under which the plugin is disabled."""

    waiting: int = 10_000
    """Maximum number of waiting calls; further ones are dropped and counted."""
    failures: int = 10
    """Number of consecutive failures of a hook that disables its plugin."""
    hang_seconds: float = 30.0
    """Duration of a notification that disables the plugin."""
    answer_seconds: float = ANSWER_SECONDS
    """Duration of a hook with a return value that disables the plugin."""
    pauses: BackoffPolicy = PAUSES
    """Time for which it stays disabled: longer each time until a call succeeds."""


@dataclass(slots=True)
class PluginDelivery:
    """Successes and failures of one plugin since the start.

    `off` is the reason why the plugin is disabled, and empty while it is enabled.
    """

    plugin: str
    limits: PluginQueueLimits
    clock: Callable[[], float]
    delivered: int = 0
    dropped: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    in_a_row: Counter[str] = field(default_factory=Counter)
    off: str = ""
    off_until: float = 0.0
    pauses: int = 0
    lacking: set[str] = field(default_factory=set)

    def is_on(self) -> bool:
        """Return whether the plugin may be called, and enable it again if its pause is over.

        After a pause, one more failure starts the next one.
        """
        if self.off and self.clock() >= self.off_until:
            self.off = ""
            _log.info("plugin_switched_on plugin=%s; its pause is over", self.plugin)
        return not self.off

    def failed(self, hook: str, error: BaseException) -> None:
        """Count an exception of a hook; the first for each hook is logged with its traceback.

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
            message = "plugin_failed plugin=%s hook=%s error=%r; more is only counted"
            _log.error(message, self.plugin, hook, error, exc_info=error)
        if self.in_a_row[hook] >= self.limits.failures:
            self.switch_off(f"{hook} has failed {self.limits.failures} times in a row")

    def succeeded(self, hook: str) -> None:
        """Reset the consecutive failures of a hook that returned."""
        self.lacking.discard(hook)
        if self.in_a_row:
            self.in_a_row.pop(hook, None)
        if self.pauses and not self.in_a_row:
            self.pauses = 0

    def switch_off(self, reason: str) -> None:
        """Disable the plugin until a pause is over."""
        if not self.off:
            pause = self.limits.pauses.pause(self.pauses)
            self.off_until, self.off = self.clock() + pause, reason
            self.pauses += 1
            logged = "plugin_disabled plugin=%s reason=%s; it is tried again in %g s"
            _log.error(logged, self.plugin, reason, pause)


def is_outage(error: BaseException) -> bool:
    """Return whether the database or broker is the cause: in every part of a group, or in an error's `__cause__`."""
    if isinstance(error, BaseExceptionGroup):
        return all(map(is_outage, error.exceptions))
    cause = error.__cause__
    return isinstance(error, (DatabaseError, BackendUnavailable)) or (cause is not None and is_outage(cause))


class PluginThread:
    """Notifies one plugin. `enqueue` never blocks and never raises; it may be called in any thread."""

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
        return self._calls.qsize()

    def enqueue(self, hook: str, value: Any) -> None:
        """Queue a call of the plugin's hook."""
        if not self.account.is_on() or self._hangs():
            return
        if self._calls.qsize() >= self._limits.waiting:
            self._drop(hook)
            return
        self._put((hook, value))

    def settled(self) -> Future[None]:
        """Return a future that is completed once all calls so far were made."""
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
            message = (
                "plugin_overflow plugin=%s hook=%s waiting=%s; it is too slow, what does not fit is dropped and counted"
            )
            _log.warning(message, self.plugin, hook, self._limits.waiting)

    def _hear(self) -> None:
        while True:
            hook, value = self._calls.get()
            if hook:
                self._heard += 1
                self._call(hook, value)
            else:
                self._batch_delivered()
                if value.set_running_or_notify_cancel():  # otherwise the caller no longer waits for it
                    value.set_result(None)
            if not self._calls.qsize():
                self._batch_delivered()
                time.sleep(REST_SECONDS)

    def _batch_delivered(self) -> None:
        if self._heard and BATCH_DELIVERED in self._functions:
            self._call(BATCH_DELIVERED, BatchDelivered(self._heard))
        self._heard = 0

    def _call(self, hook: str, value: Any) -> None:
        if self.account.off:
            return
        self._called_at = self._clock()
        try:
            self._functions[hook](value)
        except BaseException as error:  # includes sys.exit, which must not end this thread
            self.account.failed(hook, error)
        else:
            self.account.delivered += 1
            self.account.succeeded(hook)
        finally:
            self._called_at = None
