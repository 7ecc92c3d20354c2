"""Detection of new work: by notifications, by polling, or by both."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from tasker.clock import Clock, Random
from tasker.dataclasses import dataclass
from tasker.engine.polling import QueuePoll
from tasker.errors import DatabaseError, MessagingError
from tasker.messaging.listening_modes import (
    DeploymentMode,
    EventSettings,
    EventSystemStatistics,
    HealthStatus,
    ListeningHealth,
    MessageSource,
    Tally,
    effective_mode,
    judge_health,
    longest_pause,
)
from tasker.messaging.port import Capabilities
from tasker.plugins.hook_arguments import QueuePolled
from tasker.process.listener import NotificationListener, Source
from tasker.process.supervisor import Service

_log = logging.getLogger("tasker.events")


@dataclass(frozen=True, slots=True)
class Listening:
    """State of a process's listeners, and counters since the start."""

    all_listen: bool
    """True when all listen; False too when none is wanted."""
    polls_instead: bool
    """True while a listener that announces work is lost."""
    lag_seconds: float | None
    """Latency of the last notification that this process sent to itself, in seconds; None without one."""
    received: int
    """Number of notifications."""
    reconnections: int
    """Number of times a lost listener was connected again."""
    switches: int
    """Number of switches between listening and polling."""


class EventSystem:
    """The listeners of a process, and the poll interval of its queue readers.

    In `PollingOnly` nothing listens. In `EventDrivenOnly` nothing polls while the listeners work; readers poll once
    whenever a listener returns. In `Hybrid` slow polls continue meanwhile. While a listener is lost, every mode polls
    quickly; in all modes sweeps find what is missed. `on_polled` is called for each poll if performance monitoring is
    on.
    """

    def __init__(
        self,
        settings: EventSettings,
        capabilities: Capabilities,
        clock: Clock,
        random: Random,
        on_polled: Callable[[QueuePolled], None] | None = None,
    ) -> None:
        self.settings = settings
        self.mode: DeploymentMode = effective_mode(settings.deployment_mode, capabilities)
        self.is_running = False
        self._capabilities, self._changed = capabilities, asyncio.Event()
        self._clock, self._random, self._on_polled = clock, random, on_polled
        self.tally = Tally()
        self._listeners: dict[str, NotificationListener] = {}

    @property
    def listeners(self) -> dict[str, NotificationListener]:
        """Return the listeners that listen or try to, by source name; none in `PollingOnly`."""
        return {name: listener for name, listener in self._listeners.items() if listener.wanted}

    def follow(self, sources: Sequence[Source], poll_all: Callable[[], None]) -> list[Service]:
        """Return the services that listen to these sources whenever the mode asks for it.

        `poll_all` makes all queue readers poll once: it is called when notifications may have been missed.
        """
        return [self._listener(source, poll_all).run for source in sources]

    def _listener(self, source: Source, poll_all: Callable[[], None]) -> NotificationListener:
        listener = NotificationListener(
            source,
            self.settings,
            self._random,
            wanted=self._listens,
            changed=poll_all,
            pause=self.longest_pause,
        )
        self._listeners[source.name] = listener
        return listener

    @property
    def _listens(self) -> bool:
        return self.mode is not DeploymentMode.POLLING_ONLY

    def change(self, settings: EventSettings) -> None:
        """Apply other settings: mode, pauses and limits."""
        if settings == self.settings:
            return
        self.settings, self.mode = settings, effective_mode(settings.deployment_mode, self._capabilities)
        for listener in self._listeners.values():
            listener.change(settings, self._listens)
        self._changed.set()

    def longest_pause(self) -> float | None:
        """Return the longest pause between two polls of a queue in seconds; None: wait for a notification."""
        return longest_pause(self.settings, self.mode, self._lost() is None)

    def _lost(self) -> NotificationListener | None:
        """Return the lost listener that failed most often, or None."""
        lost = [listener for listener in self.listeners.values() if not listener.state.is_listening]
        return max(lost, key=lambda listener: listener.state.failures, default=None)

    @contextmanager
    def poll(self, *, polled: bool) -> Iterator[QueuePoll]:
        """Count one poll of a queue."""
        poll, began = QueuePoll(), self._clock.monotonic()
        try:
            yield poll
        except (DatabaseError, MessagingError):
            self.tally.look_failed(self._clock.monotonic())
            self._notify_poll(poll, began, polled=polled, failed=True)
            raise
        now = self._clock.monotonic()
        seconds = now - began if self.settings.health.performance_monitoring_enabled else None
        self.tally.succeeded(now, received=poll.found, polled=polled, seconds=seconds)
        self._notify_poll(poll, began, polled=polled, failed=False)

    def _notify_poll(self, poll: QueuePoll, began: float, *, polled: bool, failed: bool) -> None:
        if self._on_polled is not None and self.settings.health.performance_monitoring_enabled:
            duration_ms = (self._clock.monotonic() - began) * 1000
            self._on_polled(QueuePolled(poll.found, not polled, failed, duration_ms))

    def listening(self) -> Listening:
        all_of_them, listeners = self._listeners.values(), self.listeners.values()
        lags = [
            lag for listener in listeners if listener.state.is_listening and (lag := listener.source.lag()) is not None
        ]
        return Listening(
            all_listen=bool(listeners) and all(listener.state.is_listening for listener in listeners),
            polls_instead=any(listener.polls_instead for listener in listeners),
            lag_seconds=max(lags, default=None),
            received=sum(listener.received for listener in all_of_them),
            reconnections=sum(listener.reconnections for listener in all_of_them),
            switches=sum(2 * listener.state.fallbacks - listener.polls_instead for listener in all_of_them),
        )

    def statistics(self) -> EventSystemStatistics:
        return self.tally.statistics(self._clock.monotonic(), self.mode)

    def health(self) -> ListeningHealth:
        """Return the current health of the listeners and polls."""
        listener = self._lost()
        lost = listener.state if listener and listener.state.reception is MessageSource.POLLING_FALLBACK else None
        now = self._clock.monotonic()
        return judge_health(self.settings, self.mode, self.tally, now, running=self.is_running, lost=lost)

    async def watch(self, judge: Callable[[], ListeningHealth]) -> None:
        """Log changes of the process's health, which `judge` returns, until cancelled.

        Logs nothing during an outage, which has lines of its own, nor changes that are over at the next check (a
        breaker that tests a call).
        """
        self.is_running, known, health = True, ListeningHealth(), ListeningHealth()
        try:
            while True:
                await self._health_check_interval()
                before, health = health, judge()
                steady = health.status in (before.status, HealthStatus.HEALTHY)
                if health.status is known.status or not steady or self._away():
                    continue
                level = logging.INFO if health.status is HealthStatus.HEALTHY else logging.WARNING
                _log.log(level, "%s is %s: %s", self.settings.system_id, health.status, health.reason or "again")
                known = health
        finally:
            self.is_running = False

    def _away(self) -> bool:
        """Return True during an outage, which has log lines of its own."""
        return any(listener.source.away() for listener in self._listeners.values())

    async def _health_check_interval(self) -> None:
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.health_check_interval_seconds):
                await self._changed.wait()
