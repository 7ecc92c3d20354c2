"""How a process learns of work: by announcements, by polling, or by both (B-1 .. B-8)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from tasker.contracts.clock import Clock, Random
from tasker.contracts.messaging import Capabilities
from tasker.errors import DatabaseError, MessagingError
from tasker.lifecycle.deployment import (
    DeploymentMode,
    EventSettings,
    EventSystemStatistics,
    Health,
    HealthStatus,
    Reception,
    Tally,
    effective_mode,
    judge_health,
    longest_pause,
)
from tasker.process.listening.listener import Listener, Source
from tasker.process.supervision.supervisor import Service
from tasker.services.engine.polling import Poll

_log = logging.getLogger("tasker.events")


class EventSystem:
    """When one process looks for work: what it listens to, and how often whoever reads a queue polls it.

    In `PollingOnly` nothing listens. In `EventDrivenOnly` nobody polls while the listeners work; they look once
    whenever a listener comes back. In `Hybrid` slow polls go on below. While a listener is lost, every mode polls
    quickly; sweeps find what is missed in all of them.
    """

    def __init__(
        self,
        settings: EventSettings,
        capabilities: Capabilities,
        clock: Clock,
        random: Random,
    ) -> None:
        self.settings = settings
        self.mode: DeploymentMode = effective_mode(settings.deployment_mode, capabilities)
        self.is_running = False
        self._capabilities, self._changed = capabilities, asyncio.Event()
        self._clock, self._random = clock, random
        self._tally = Tally()
        self._listeners: dict[str, Listener] = {}

    @property
    def listeners(self) -> dict[str, Listener]:
        """Those that listen, or try to, by the names of their sources; none in `PollingOnly`."""
        return {name: each for name, each in self._listeners.items() if each.wanted}

    def follow(self, sources: Sequence[Source], look: Callable[[], None]) -> list[Service]:
        """The services that listen to these sources whenever the mode asks for it.

        `look` makes everybody who reads a queue look once: it is called when announcements may have been missed.
        """
        return [self._listener(source, look).run for source in sources]

    def _listener(self, source: Source, look: Callable[[], None]) -> Listener:
        listener = Listener(
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
        """Learn of work in this way from now on: another mode, other pauses, other limits (B-9)."""
        if settings == self.settings:
            return
        self.settings, self.mode = settings, effective_mode(settings.deployment_mode, self._capabilities)
        for listener in self._listeners.values():
            listener.change(settings, self._listens)
        self._changed.set()

    def longest_pause(self) -> float | None:
        """Seconds between two looks at a queue at most; None: wait for an announcement."""
        return longest_pause(self.settings, self.mode, self._lost() is None)

    def _lost(self) -> Listener | None:
        """A listener that ought to announce work and does not; the one that failed most often."""
        lost = [each for each in self.listeners.values() if each.source.brings_work and not each.state.is_listening]
        return max(lost, key=lambda each: each.state.failures, default=None)

    @contextmanager
    def poll(self, *, polled: bool) -> Iterator[Poll]:
        """Count one look at a queue."""
        poll, began = Poll(), self._clock.monotonic()
        try:
            yield poll
        except (DatabaseError, MessagingError):
            self._tally.look_failed(self._clock.monotonic())
            raise
        now = self._clock.monotonic()
        seconds = now - began if self.settings.performance_monitoring_enabled else None
        self._tally.succeeded(now, found=poll.found > 0, polled=polled, seconds=seconds)

    def statistics(self) -> EventSystemStatistics:
        """What has come of it since the start (B-5)."""
        return self._tally.statistics(self._clock.monotonic(), self.mode)

    def health(self) -> Health:
        """How well it does now (B-6)."""
        listener = self._lost()
        lost = listener.state if listener and listener.state.reception is Reception.POLLING_FALLBACK else None
        now = self._clock.monotonic()
        return judge_health(self.settings, self.mode, self._tally, now, running=self.is_running, lost=lost)

    async def watch(self, judge: Callable[[], Health]) -> None:
        """Say so in the log when the health of the process changes, which `judge` knows, until cancelled.

        Not during an outage, which is told by itself, and not what is over at the next look: a breaker that tries.
        """
        self.is_running, known, health = True, Health(), Health()
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
