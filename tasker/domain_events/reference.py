"""Ready-made subscribers: one logs every event, one counts events."""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from tasker.domain_events.subscriber import BaseSubscriber
from tasker.log_lines import log_line

log = logging.getLogger("tasker.domain_events")
TOLD = ("correlation_id", "task_uuid", "namespace", "fired_at")


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
        fields = {name: metadata.get(name) for name in TOLD}
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
