"""Deployment modes: how a process learns of work, and how it reacts to a lost listener.

Times are monotonic seconds passed by the caller.
"""

from __future__ import annotations

from collections import deque
from dataclasses import field, replace
from enum import StrEnum

from tasker.dataclasses import dataclass
from tasker.messaging.port import Capabilities
from tasker.settings.listening import (
    EventSystemSettings,
    FallbackPoller,
    HealthReporting,
    Listener,
    OrchestratorEventSystem,
    Timing,
    WorkerSystem,
)
from tasker.settings.queues import QueueSettings

MINUTE = 60.0


class DeploymentMode(StrEnum):
    """Configured way in which a process learns of work. Each process has its own mode; a fleet may mix them."""

    POLLING_ONLY = "PollingOnly"
    EVENT_DRIVEN_ONLY = "EventDrivenOnly"
    HYBRID = "Hybrid"


USUAL_MODE = DeploymentMode(EventSystemSettings.deployment_mode)


def effective_mode(configured: DeploymentMode, capabilities: Capabilities) -> DeploymentMode:
    """Return the mode that is possible on a backend.

    Without push there are no events; if a push is never lost, a hybrid process needs no polling.
    """
    if not capabilities.push:
        return DeploymentMode.POLLING_ONLY
    if configured is DeploymentMode.HYBRID and not capabilities.fallback_polling:
        return DeploymentMode.EVENT_DRIVEN_ONLY
    return configured


class MessageSource(StrEnum):
    """State of a listener. Work is processed in each state; only the way it is found differs."""

    CONNECTING = "connecting"
    EVENT_DRIVEN = "event_driven"
    POLLING_FALLBACK = "polling_fallback"


class Notice(StrEnum):
    """Change of a listener's state to report to the operator."""

    NONE = "none"
    LISTENING = "listening"
    LOST = "lost"
    STILL_LOST = "still_lost"
    RESTORED = "restored"


@dataclass(frozen=True, slots=True)
class ListenerState:
    """State of a listener, its consecutive failures, and how often it fell back to polling."""

    reception: MessageSource = MessageSource.CONNECTING
    failures: int = 0
    fallbacks: int = 0

    @property
    def is_listening(self) -> bool:
        """True while no notification can be missed."""
        return self.reception is MessageSource.EVENT_DRIVEN

    def connected(self) -> ListenerState:
        """Return the state after the listener connected and a check proved that notifications arrive."""
        return replace(self, reception=MessageSource.EVENT_DRIVEN, failures=0)

    def lost(self) -> ListenerState:
        """Return the state after connecting failed, the connection ended, or a check went unanswered."""
        fell = self.reception is not MessageSource.POLLING_FALLBACK
        return ListenerState(MessageSource.POLLING_FALLBACK, self.failures + 1, self.fallbacks + fell)


def notice(before: ListenerState, after: ListenerState, max_retry_attempts: int) -> Notice:
    """Return the notice for a state change: one for each switch, and one if the listener exceeds its retry attempts."""
    if after.is_listening:
        if before.is_listening:
            return Notice.NONE
        return Notice.LISTENING if before.reception is MessageSource.CONNECTING else Notice.RESTORED
    if after.failures == max_retry_attempts + 1:
        return Notice.STILL_LOST
    return Notice.NONE if before.reception is MessageSource.POLLING_FALLBACK else Notice.LOST


@dataclass(frozen=True, slots=True)
class EventSettings:
    """Settings of how a process learns of work. The defaults are a worker's."""

    system_id: str = WorkerSystem.system_id
    """Label in the log."""
    deployment_mode: DeploymentMode = DeploymentMode(EventSystemSettings.deployment_mode)
    poll_ms: int = FallbackPoller.polling_interval_ms
    """Longest poll interval."""
    lost_poll_ms: int = QueueSettings.poll_interval_ms
    """Poll interval while the listener is lost, unless `poll_ms` is shorter."""
    listener: Listener = Listener.for_single_process()
    health: HealthReporting = HealthReporting.for_single_process()
    health_check_interval_seconds: float = Timing.health_check_interval_seconds
    """Interval of the process's health check."""
    listen_url: str | None = field(default=None, repr=False)
    """URL to listen on if it differs from the database's URL (because of a pooler)."""


WORKER_EVENTS = EventSettings()
ORCHESTRATOR_EVENTS = EventSettings(
    OrchestratorEventSystem.system_id, poll_ms=Timing.fallback_polling_interval_seconds * 1000
)
"""Defaults of an orchestrator, which is notified of nearly everything."""


def longest_pause(settings: EventSettings, mode: DeploymentMode, listening: bool) -> float | None:
    """Return the poll interval in seconds, or None if only notifications trigger a poll."""
    if mode is DeploymentMode.POLLING_ONLY:
        return settings.poll_ms / 1000
    if not listening:
        return min(settings.poll_ms, settings.lost_poll_ms) / 1000
    return None if mode is DeploymentMode.EVENT_DRIVEN_ONLY else settings.poll_ms / 1000


class HealthStatus(StrEnum):
    """Levels of health, best first."""

    HEALTHY = "Healthy"
    DEGRADED = "Degraded"
    UNHEALTHY = "Unhealthy"
    CRITICAL = "Critical"


@dataclass(frozen=True, slots=True)
class ListeningHealth:
    """Health of a listening or polling process, and the reason if it is not healthy."""

    status: HealthStatus = HealthStatus.HEALTHY
    reason: str = ""


@dataclass(frozen=True, slots=True)
class EventSystemStatistics:
    """Statistics of polls since the start. Only successes count as processed."""

    events_processed: int
    """Polls that found work."""
    events_failed: int
    """Polls that failed."""
    processing_rate: float
    """Processed per second, over the last minute."""
    average_latency_ms: float | None
    """Average duration of a poll that found work; None if nothing was measured."""
    deployment_mode_score: float
    """Share of the processed events that did not need the fallback polling of an event-driven mode; initially 1.0."""
    success_rate: float
    """Share of processed events in processed and failed ones; 1.0 before any event."""
    found_by_polling: int
    """Processed events that only a poll found."""


@dataclass(slots=True)
class Tally:
    """Counter of polls for work. Every method gets the present time."""

    looks: int = 0
    """Number of all polls, including failed ones."""
    processed: int = 0
    failed: int = 0
    found_by_polling: int = 0
    messages: int = 0
    """Messages found, and steps that waited without one."""
    messages_by_polling: int = 0
    """Messages found without a preceding notification."""
    errors_in_a_row: int = 0
    _seconds: float = 0.0
    _measured: int = 0
    _recent: deque[float] = field(default_factory=lambda: deque(maxlen=100_000))
    _errors: deque[float] = field(default_factory=lambda: deque(maxlen=10_001))

    def succeeded(self, now: float, *, received: int, polled: bool, seconds: float | None) -> None:
        """Record a poll that returned `received` items.

        `polled` is True if no notification preceded it; `seconds` is its duration (None: not measured).
        """
        self.looks += 1
        self.errors_in_a_row = 0
        if not received:
            return
        self.processed += 1
        self.messages += received
        if polled:
            self.found_by_polling += 1
            self.messages_by_polling += received
        self._recent.append(now)
        if seconds is not None:
            self._seconds, self._measured = self._seconds + seconds, self._measured + 1

    def look_failed(self, now: float) -> None:
        """Record a failed poll."""
        self.looks += 1
        self.failed += 1
        self.errors_in_a_row += 1
        self._errors.append(now)

    def errors_in_last_minute(self, now: float) -> int:
        """Return the number of failed polls within a minute of `now`."""
        return _recent(self._errors, now)

    def statistics(self, now: float, mode: DeploymentMode) -> EventSystemStatistics:
        """Return the statistics up to `now`."""
        total = self.processed + self.failed
        fallback = 0 if mode is DeploymentMode.POLLING_ONLY else self.found_by_polling
        return EventSystemStatistics(
            events_processed=self.processed,
            events_failed=self.failed,
            processing_rate=_recent(self._recent, now) / MINUTE,
            average_latency_ms=self._seconds * 1000 / self._measured if self._measured else None,
            deployment_mode_score=1 - fallback / self.processed if self.processed else 1.0,
            success_rate=self.processed / total if total else 1.0,
            found_by_polling=self.found_by_polling,
        )


def _recent(times: deque[float], now: float) -> int:
    while times and times[0] <= now - MINUTE:
        times.popleft()
    return len(times)


def judge_health(
    settings: EventSettings,
    mode: DeploymentMode,
    tally: Tally,
    now: float,
    *,
    running: bool = True,
    lost: ListenerState | None = None,
) -> ListeningHealth:
    """Return the health of a process's listening; `lost` is the state of a listener that receives nothing, if any."""
    if not running:
        return ListeningHealth(HealthStatus.CRITICAL, "it does not run")
    if settings.health.enabled and (reason := _too_many_errors(settings, tally, now)):
        return ListeningHealth(HealthStatus.UNHEALTHY, reason)
    if lost is None:
        return ListeningHealth()
    if mode is DeploymentMode.EVENT_DRIVEN_ONLY and lost.failures > settings.listener.max_retry_attempts:
        return ListeningHealth(
            HealthStatus.UNHEALTHY, f"the listener failed {lost.failures} times in a row; polling instead"
        )
    return ListeningHealth(HealthStatus.DEGRADED, "the listener is lost; polling instead")


def _too_many_errors(settings: EventSettings, tally: Tally, now: float) -> str:
    if tally.errors_in_a_row >= settings.health.max_consecutive_errors:
        return f"{tally.errors_in_a_row} errors in a row"
    rate = tally.errors_in_last_minute(now)
    return f"{rate} errors in the last minute" if rate > settings.health.error_rate_threshold_per_minute else ""
