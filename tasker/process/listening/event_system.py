"""How a process learns of work: by announcements, by polling, or by both."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from tasker.contracts.clock import Clock, Random
from tasker.contracts.dataclasses import dataclass
from tasker.contracts.hook_arguments import QueuePolled
from tasker.contracts.messaging import Capabilities
from tasker.errors import DatabaseError, MessagingError
from tasker.lifecycle.deployment import (
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
from tasker.process.listening.listener import NotificationListener, Source
from tasker.process.supervision.supervisor import Service
from tasker.services.engine.polling import QueuePoll

_log = logging.getLogger("tasker.events")


@dataclass(frozen=True, slots=True)
class Listening:
    """How the listeners of a process do, and what came of them since the start."""

    all_listen: bool
    """Each of them; False too where nothing is to listen."""
    polls_instead: bool
    """One that brings work is lost."""
    lag_seconds: float | None
    """How long a notification took that this process sent to itself, the last time; None without one."""
    received: int
    """Announcements."""
    reconnections: int
    """How often one listened again after it had been lost."""
    switches: int
    """From listening to polling, and back."""


class EventSystem:
    """When one process looks for work: what it listens to, and how often whoever reads a queue polls it.

    In `PollingOnly` nothing listens. In `EventDrivenOnly` nobody polls while the listeners work; they look once
    whenever a listener comes back. In `Hybrid` slow polls go on below. While a listener is lost, every mode polls
    quickly; sweeps find what is missed in all of them. `on_looked` is told of each look whose time is measured.
    """

    def __init__(
        self,
        settings: EventSettings,
        capabilities: Capabilities,
        clock: Clock,
        random: Random,
        on_looked: Callable[[QueuePolled], None] | None = None,
    ) -> None:
        self.settings = settings
        self.mode: DeploymentMode = effective_mode(settings.deployment_mode, capabilities)
        self.is_running = False
        self._capabilities, self._changed = capabilities, asyncio.Event()
        self._clock, self._random, self._on_looked = clock, random, on_looked
        self.tally = Tally()
        self._listeners: dict[str, NotificationListener] = {}

    @property
    def listeners(self) -> dict[str, NotificationListener]:
        """Those that listen, or try to, by the names of their sources; none in `PollingOnly`."""
        return {name: each for name, each in self._listeners.items() if each.wanted}

    def follow(self, sources: Sequence[Source], look: Callable[[], None]) -> list[Service]:
        """The services that listen to these sources whenever the mode asks for it.

        `look` makes everybody who reads a queue look once: it is called when announcements may have been missed.
        """
        return [self._listener(source, look).run for source in sources]

    def _listener(self, source: Source, look: Callable[[], None]) -> NotificationListener:
        listener = NotificationListener(
            source,
            self.settings,
            self._random,
            wanted=self._listens,
            changed=look,
            pause=self.longest_pause,
        )
        self._listeners[source.name] = listener
        return listener

    @property
    def _listens(self) -> bool:
        return self.mode is not DeploymentMode.POLLING_ONLY

    def change(self, settings: EventSettings) -> None:
        """Learn of work in this way from now on: another mode, other pauses, other limits."""
        if settings == self.settings:
            return
        self.settings, self.mode = settings, effective_mode(settings.deployment_mode, self._capabilities)
        for listener in self._listeners.values():
            listener.change(settings, self._listens)
        self._changed.set()

    def longest_pause(self) -> float | None:
        """Seconds between two looks at a queue at most; None: wait for an announcement."""
        return longest_pause(self.settings, self.mode, self._lost() is None)

    def _lost(self) -> NotificationListener | None:
        """A listener that ought to announce work and does not; the one that failed most often."""
        lost = [each for each in self.listeners.values() if each.source.brings_work and not each.state.is_listening]
        return max(lost, key=lambda each: each.state.failures, default=None)

    @contextmanager
    def poll(self, *, polled: bool) -> Iterator[QueuePoll]:
        """Count one look at a queue."""
        poll, began = QueuePoll(), self._clock.monotonic()
        try:
            yield poll
        except (DatabaseError, MessagingError):
            self.tally.look_failed(self._clock.monotonic())
            self._looked(poll, began, polled=polled, failed=True)
            raise
        now = self._clock.monotonic()
        seconds = now - began if self.settings.performance_monitoring_enabled else None
        self.tally.succeeded(now, found=poll.found, polled=polled, seconds=seconds)
        self._looked(poll, began, polled=polled, failed=False)

    def _looked(self, poll: QueuePoll, began: float, *, polled: bool, failed: bool) -> None:
        if self._on_looked is not None and self.settings.performance_monitoring_enabled:
            duration_ms = (self._clock.monotonic() - began) * 1000
            self._on_looked(QueuePolled(poll.found, not polled, failed, duration_ms))

    def listening(self) -> Listening:
        """How its listeners do now."""
        all_of_them, wanted = self._listeners.values(), self.listeners.values()
        lags = [lag for each in wanted if each.state.is_listening and (lag := each.source.lag()) is not None]
        return Listening(
            all_listen=bool(wanted) and all(each.state.is_listening for each in wanted),
            polls_instead=any(each.source.brings_work and each.polls_instead for each in wanted),
            lag_seconds=max(lags, default=None),
            received=sum(each.received for each in all_of_them),
            reconnections=sum(each.reconnections for each in all_of_them),
            switches=sum(2 * each.state.fallbacks - each.polls_instead for each in all_of_them),
        )

    def statistics(self) -> EventSystemStatistics:
        """What has come of it since the start."""
        return self.tally.statistics(self._clock.monotonic(), self.mode)

    def health(self) -> ListeningHealth:
        """How well it does now."""
        listener = self._lost()
        lost = listener.state if listener and listener.state.reception is MessageSource.POLLING_FALLBACK else None
        now = self._clock.monotonic()
        return judge_health(self.settings, self.mode, self.tally, now, running=self.is_running, lost=lost)

    async def watch(self, judge: Callable[[], ListeningHealth]) -> None:
        """Say so in the log when the health of the process changes, which `judge` knows, until cancelled.

        Not during an outage, which is told by itself, and not what is over at the next look: a breaker that tries.
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
        """True during an outage, which has a line of its own."""
        return any(listener.source.away() for listener in self._listeners.values())

    async def _health_check_interval(self) -> None:
        """Wait that long, or until it changes."""
        self._changed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(self.settings.health_check_interval_seconds):
                await self._changed.wait()
