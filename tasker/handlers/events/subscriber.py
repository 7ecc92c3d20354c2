"""Base class of subscribers, and those that log and count."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import Any

from tasker.handlers.events.delivery import awaited
from tasker.handlers.events.poller import InProcessDomainEventPoller
from tasker.logging.lines import log_line
from tasker.settings.queues import InProcessEvents

log = logging.getLogger("tasker.domain_events")


class BaseSubscriber(ABC):
    """Handles the events whose name matches one of its patterns (`payment.*`, `order.completed`).

    `handle` and the hooks around it may be async: they run in the subscriber's own thread, all in one event loop, and a
    call that takes longer than `dispatch_timeout_ms` is cancelled.
    """

    failed = 0
    """Number of events whose handling failed."""
    _poller: InProcessDomainEventPoller | None = None

    def __init__(self) -> None:
        self._active = False

    @classmethod
    @abstractmethod
    def subscribes_to(cls) -> list[str]:
        """Return the patterns; `*` stands for anything."""

    @abstractmethod
    def handle(self, event: dict[str, Any]) -> Awaitable[None] | None:
        """Process an event."""

    @property
    def subscriber_name(self) -> str:
        """Name in the log: by default that of the class."""
        return type(self).__name__

    @property
    def active(self) -> bool:
        """True between `start` and `stop`."""
        return self._active

    @property
    def subscriptions(self) -> list[str]:
        """Patterns of this instance."""
        return list(self.subscribes_to())

    def before_handle(self, event: dict[str, Any]) -> Awaitable[bool] | bool:
        """Return False to skip an event; called before `handle`."""
        return True

    def after_handle(self, event: dict[str, Any]) -> Awaitable[None] | None:  # noqa: B027 (an optional hook)
        """Observe that `handle` returned."""

    def on_handle_error(self, event: dict[str, Any], error: Exception) -> Awaitable[None] | None:
        """Handle an exception of `handle` or of the hooks around it; logs it by default, unless logging is disabled."""
        if self._poller is None or self._poller.limits.log_subscriber_errors:
            log.error("%s failed at %s", self.subscriber_name, event.get("event_name"), exc_info=error)
        return None

    def matches(self, event_name: str) -> bool:
        """Return True if a pattern matches."""
        return any(fnmatchcase(event_name, pattern) for pattern in self.subscribes_to())

    def start(self, poller: InProcessDomainEventPoller) -> None:
        """Start to receive the events of the poller."""
        if not self._active:
            self._active = True
            if self._poller is not poller:
                self._poller = poller
                poller.on_event(self._receive, wants=self._wants)

    def stop(self) -> None:
        """Stop receiving events."""
        self._active = False

    def _wants(self, event_name: str) -> bool:
        return self._active and self.matches(event_name)

    def _receive(self, event: dict[str, Any]) -> None:
        if self._active:
            self.handle_event_safely(event)

    def handle_event_safely(self, event: dict[str, Any]) -> None:
        """Handle one event with its hooks. Never raises."""
        try:
            if self._awaited(self.before_handle(event)):
                self._awaited(self.handle(event))
                self._awaited(self.after_handle(event))
        except Exception as error:
            self.failed += 1
            self._report(event, error)

    def _report(self, event: dict[str, Any], error: Exception) -> None:
        try:
            self._awaited(self.on_handle_error(event, error))
        except Exception:
            log.exception("on_handle_error of %s failed", self.subscriber_name)

    def _awaited(self, returned: Any) -> Any:
        limits = InProcessEvents() if self._poller is None else self._poller.limits
        return awaited(returned, limits.dispatch_timeout_ms / 1000)


METADATA_FIELDS = ("correlation_id", "task_uuid", "namespace", "fired_at")


class LoggingSubscriber(BaseSubscriber):
    """Logs a line `Domain event received` at INFO for every event; `prefix` distinguishes several instances."""

    def __init__(self, prefix: str = "") -> None:
        super().__init__()
        self.prefix = prefix

    @classmethod
    def subscribes_to(cls) -> list[str]:
        """Return `*` for all events; a subclass may restrict this."""
        return ["*"]

    def handle(self, event: dict[str, Any]) -> None:
        """Log the event."""
        metadata = event.get("metadata") or {}
        fields = {name: metadata.get(name) for name in METADATA_FIELDS}
        fields |= {"event_name": event.get("event_name"), "event_id": event.get("event_id")}
        fields["step_name"] = metadata.get("step_name") or "unknown"
        if self.prefix:
            fields["prefix"] = self.prefix
        log_line(log, logging.INFO, "Domain event received", fields)


class MetricsSubscriber(BaseSubscriber):
    """Counts all events, successes, failures, and events by namespace. The counts may be read in any thread."""

    def __init__(self, clock: Callable[[], datetime] = lambda: datetime.now(UTC)) -> None:
        super().__init__()
        self._clock, self._lock = clock, threading.Lock()
        self.reset()

    @classmethod
    def subscribes_to(cls) -> list[str]:
        """Return `*` for all events; a subclass may restrict this."""
        return ["*"]

    def reset(self) -> None:
        """Set all counts to zero."""
        with self._lock:
            self.events_received = self.success_events = self.failure_events = 0
            self.events_by_namespace: Counter[str] = Counter()
            self.last_event_at: datetime | None = None

    def handle(self, event: dict[str, Any]) -> None:
        """Count the event."""
        good = bool((event.get("execution_result") or {}).get("success"))
        namespace = (event.get("metadata") or {}).get("namespace") or "unknown"
        with self._lock:
            self.events_received += 1
            self.success_events += good
            self.failure_events += not good
            self.events_by_namespace[namespace] += 1
            self.last_event_at = self._clock()
