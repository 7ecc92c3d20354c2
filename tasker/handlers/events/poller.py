"""Bounded channel of events, and the thread that delivers them."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable
from time import monotonic
from typing import Any, TypeAlias

from tasker.handlers.events.delivery import SubscriberThread
from tasker.settings.queues import InProcessEvents

CAPACITY = 1000


class InProcessChannel:
    """Events waiting for a poller, oldest first. Thread-safe."""

    def __init__(self, capacity: int = CAPACITY) -> None:
        self.capacity = capacity
        self.dropped = 0
        self.pollers = 0
        """Number of running pollers of this channel."""
        self._events: deque[dict[str, Any]] = deque()

    def send(self, event: dict[str, Any]) -> bool:
        """Add an event. If the channel is full, count it in `dropped` and return False."""
        if len(self._events) >= self.capacity:
            self.dropped += 1
            return False
        self._events.append(event)
        return True

    def receive(self) -> dict[str, Any] | None:
        """Return the oldest event, or None."""
        try:
            return self._events.popleft()
        except IndexError:
            return None

    def __len__(self) -> int:
        return len(self._events)


shared = InProcessChannel()
"""Channel that publishers and pollers use by default."""


class PollingThread(ABC):
    """Runs `_run` in a daemon thread between `start` and `stop`. `_run` ends when `_stopping` is set."""

    thread_name = "tasker-poller"

    def __init__(self, polling_interval_ms: int) -> None:
        self._interval = polling_interval_ms / 1000
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Start the daemon thread; does nothing if it is running."""
        if not self.is_running:
            self._stopping.clear()
            self._thread = threading.Thread(target=self._run, name=self.thread_name, daemon=True)
            self._thread.start()

    def stop(self, timeout: float = 5.0) -> None:
        """Let the thread finish its current work and stop, within `timeout` seconds. May be called twice."""
        self._stopping.set()
        thread, self._thread = self._thread, None
        if thread is not None:
            thread.join(timeout)

    @property
    def is_running(self) -> bool:
        """True while the thread is alive."""
        return self._thread is not None and self._thread.is_alive()

    @abstractmethod
    def _run(self) -> None:
        """Poll until `_stopping` is set, with pauses of `_interval` seconds."""


log = logging.getLogger("tasker.domain_events")

DomainEventCallback: TypeAlias = Callable[[dict[str, Any]], Awaitable[None] | None]
ErrorCallback: TypeAlias = Callable[[Exception], None]
Wants: TypeAlias = Callable[[str], bool]

LIMITS = InProcessEvents()


class InProcessDomainEventPoller(PollingThread):
    """Takes events from the process's channel and delivers them to every listener.

    Once started, it gives each listener a thread and a bounded queue of its own, so that a slow or failing one delays
    no other. `poll` alone calls the listeners directly, one after the other. `limits` apply to each listener.
    """

    thread_name = "tasker-domain-events"
    DEFAULT_POLL_INTERVAL_MS = 10
    DEFAULT_MAX_EVENTS_PER_POLL = 100

    def __init__(
        self,
        polling_interval_ms: int = DEFAULT_POLL_INTERVAL_MS,
        max_events_per_poll: int = DEFAULT_MAX_EVENTS_PER_POLL,
        *,
        channel: InProcessChannel | None = None,
        limits: InProcessEvents = LIMITS,
    ) -> None:
        super().__init__(polling_interval_ms)
        self.limits = limits
        self.listeners: list[SubscriberThread] = []
        self._limit = max_events_per_poll
        self._channel = shared if channel is None else channel
        self._error_callbacks: list[ErrorCallback] = []
        self._processed = self._polls = 0

    def on_event(self, callback: DomainEventCallback, *, wants: Wants = lambda name: True) -> None:
        """Call `callback` with every event for whose name `wants` returns True."""
        self.listeners.append(SubscriberThread(_name_of(callback), callback, wants, self._report, self.limits))

    def on_error(self, callback: ErrorCallback) -> None:
        """Call `callback` with the exceptions of event callbacks."""
        self._error_callbacks.append(callback)

    @property
    def stats(self) -> dict[str, int]:
        """Counts `events_processed`, `events_failed`, `poll_count`, and `events_dropped` by full queues."""
        return {
            "events_processed": self._processed,
            "events_failed": sum(listener.failed for listener in self.listeners),
            "poll_count": self._polls,
            "events_dropped": self._channel.dropped + sum(listener.dropped for listener in self.listeners),
        }

    def start(self) -> None:
        """Start to deliver events in a daemon thread; does nothing if it is running."""
        if not self.is_running:
            self._channel.pollers += 1
        super().start()

    def stop(self, timeout: float = 5.0) -> None:
        """Deliver waiting events and stop, within `timeout` seconds. May be called twice."""
        if self.is_running:
            self._channel.pollers -= 1
        end = monotonic() + timeout
        super().stop(timeout)
        for listener in self.listeners:
            listener.end()
        for listener in self.listeners:
            listener.ended(end - monotonic())

    def poll(self) -> int:
        """Deliver waiting events in the calling thread, at most `max_events_per_poll`; return their number."""
        return self._take(SubscriberThread.hear)

    def _run(self) -> None:
        while not self._stopping.is_set():
            if self._hand_on() == 0:
                self._stopping.wait(self._interval)
        # waiting events are delivered before the thread ends
        for _ in range(1 + self._channel.capacity // self._limit):
            self._hand_on()

    def _hand_on(self) -> int:
        for listener in self.listeners:
            listener.check_timeout()
        return self._take(SubscriberThread.enqueue)

    def _take(self, bring: Callable[[SubscriberThread, str, Any], None]) -> int:
        self._polls += 1
        for count in range(self._limit):
            event = self._channel.receive()
            if event is None:
                return count
            self._processed += 1
            self._bring(bring, event)
        return self._limit

    def _bring(self, bring: Callable[[SubscriberThread, str, Any], None], event: dict[str, Any]) -> None:
        try:
            callback_event = self._shown(event)
        except Exception as error:
            self._report(error)
            return
        for listener in list(self.listeners):
            bring(listener, str(event.get("event_name", "")), callback_event)

    def _shown(self, event: dict[str, Any]) -> Any:
        """Return the event in the form that callbacks get."""
        return event

    def _report(self, error: Exception) -> None:
        log.error("a domain event callback failed", exc_info=error)
        for callback in list(self._error_callbacks):
            try:
                callback(error)
            except Exception:
                log.exception("an error callback failed")


def _name_of(callback: DomainEventCallback) -> str:
    """Return the name of a callback for the log: of a method's object its name or class, else the function."""
    owner = getattr(callback, "__self__", None)
    if owner is None:
        return getattr(callback, "__qualname__", repr(callback))
    return str(getattr(owner, "subscriber_name", type(owner).__name__))
