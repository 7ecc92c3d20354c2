"""The thread that brings events to subscribers."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, TypeAlias

from tasker.domain_events.channel import InProcessChannel, shared
from tasker.domain_events.polling_thread import PollingThread

log = logging.getLogger("tasker.domain_events")

DomainEventCallback: TypeAlias = Callable[[dict[str, Any]], None]
ErrorCallback: TypeAlias = Callable[[Exception], None]


class InProcessDomainEventPoller(PollingThread):
    """Takes events from the process's channel and calls everyone in turn. One that raises does not stop the others."""

    thread_name = "tasker-domain-events"
    DEFAULT_POLL_INTERVAL_MS = 10
    DEFAULT_MAX_EVENTS_PER_POLL = 100

    def __init__(
        self,
        polling_interval_ms: int = DEFAULT_POLL_INTERVAL_MS,
        max_events_per_poll: int = DEFAULT_MAX_EVENTS_PER_POLL,
        *,
        channel: InProcessChannel | None = None,
    ) -> None:
        super().__init__(polling_interval_ms)
        self._limit = max_events_per_poll
        self._channel = shared if channel is None else channel
        self._callbacks: list[DomainEventCallback] = []
        self._error_callbacks: list[ErrorCallback] = []
        self._stats = {"events_processed": 0, "events_failed": 0, "poll_count": 0}

    def on_event(self, callback: DomainEventCallback) -> None:
        """Call this with every event."""
        self._callbacks.append(callback)

    def on_error(self, callback: ErrorCallback) -> None:
        """Call this with what a callback raised."""
        self._error_callbacks.append(callback)

    @property
    def stats(self) -> dict[str, int]:
        """`events_processed`, `events_failed`, `poll_count`, and `events_dropped` by a full channel."""
        return {**self._stats, "events_dropped": self._channel.dropped}

    def start(self) -> None:
        """Begin, in a daemon thread; nothing happens when it runs already."""
        if not self.is_running:
            self._channel.pollers += 1
        super().start()

    def stop(self, timeout: float = 5.0) -> None:
        """Bring what is waiting, and stop, within `timeout` seconds. May be called twice."""
        if self.is_running:
            self._channel.pollers -= 1
        super().stop(timeout)

    def poll(self) -> int:
        """Deliver what is waiting, at most `max_events_per_poll` events; how many there were."""
        self._stats["poll_count"] += 1
        for count in range(self._limit):
            event = self._channel.receive()
            if event is None:
                return count
            self._deliver(event)
        return self._limit

    def _run(self) -> None:
        while not self._stopping.is_set():
            if self.poll() == 0:
                self._stopping.wait(self._interval)
        self.poll()  # what is waiting is delivered before it ends

    def _deliver(self, event: dict[str, Any]) -> None:
        self._stats["events_processed"] += 1
        for callback in list(self._callbacks):
            try:
                callback(event)
            except Exception as error:
                self._stats["events_failed"] += 1
                self._report(error)

    def _report(self, error: Exception) -> None:
        log.error("a domain event callback failed", exc_info=error)
        for callback in list(self._error_callbacks):
            try:
                callback(error)
            except Exception:
                log.exception("an error callback failed")
