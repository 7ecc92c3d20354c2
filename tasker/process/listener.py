"""One source of announcements, kept open: the automaton of the deployment mode with its clock, its log and its
pauses."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any

from tasker.clock import Random, jittered
from tasker.dataclasses import dataclass
from tasker.errors import DatabaseError, MessagingError, TaskerError
from tasker.messaging.listening_modes import EventSettings, ListenerState, MessageSource, Notice, notice
from tasker.process.supervisor import is_cancelled
from tasker.resilience.outage import is_outage

SPREAD = 0.25
"""Jitter between processes of the pause before a lost source is opened again, as a share of the pause."""
_log = logging.getLogger("tasker.events")


@dataclass(frozen=True, slots=True)
class Source:
    """A source of notifications. Its first item says that notifications arrive; None announces nothing."""

    name: str
    news: Callable[[EventSettings], AsyncGenerator[Any, None]]
    on_item: Callable[[Any], None]
    away: Callable[[], bool] = lambda: False
    """True during an outage of the server, which has log lines of its own."""
    lag: Callable[[], float | None] = lambda: None
    """Latency of recent notifications in seconds; None where it is not measured."""


class NotificationListener:
    """Listener of a source until cancelled, which reopens it when it is lost. While not `wanted` it is idle.

    `changed` is called at each switch, and when the settings change: notifications may have been missed and pauses may
    differ, so all readers must poll once. `pause()` returns the current poll interval, for the log.
    """

    def __init__(
        self,
        source: Source,
        settings: EventSettings,
        random: Random,
        *,
        wanted: bool,
        changed: Callable[[], None],
        pause: Callable[[], float | None],
    ) -> None:
        self.source, self.state = source, ListenerState()
        self.wanted = wanted
        self.received = 0
        """Number of notifications since the start."""
        self.reconnections = 0
        """Number of times the lost source was opened again."""
        self._settings, self._random, self._changed, self._pause = settings, random, changed, pause
        self._unchanged: asyncio.Timeout | None = None
        self._told = False

    @property
    def polls_instead(self) -> bool:
        """Return True while the source is lost."""
        return self.state.reception is MessageSource.POLLING_FALLBACK

    def change(self, settings: EventSettings, wanted: bool) -> None:
        self._settings, self.wanted = settings, wanted
        # the source may take a while to close, so reschedule only once
        unchanged, self._unchanged = self._unchanged, None
        if unchanged is not None:
            unchanged.reschedule(0)
        self._changed()

    async def run(self) -> None:
        """Listen, or be idle while not wanted, until cancelled."""
        while True:
            unchanged = asyncio.timeout(None)
            try:
                async with unchanged:
                    self._unchanged = unchanged
                    await (self._listen() if self.wanted else asyncio.Event().wait())
            except (TimeoutError, DatabaseError, MessagingError):
                if not unchanged.expired():
                    raise
            finally:  # also when it crashed, and is started again
                self._unchanged = None
                self._reset()

    def _reset(self) -> None:
        listened, self.state = self.state.is_listening, ListenerState(fallbacks=self.state.fallbacks)
        if listened:
            self._changed()

    async def _listen(self) -> None:
        while True:
            problem = TaskerError("the source ended")
            try:
                await self._follow()
            except (DatabaseError, MessagingError) as error:
                if is_cancelled():  # the source's client turned the cancellation into this error
                    raise
                problem = error
            self._step(self.state.lost(), problem)
            await asyncio.sleep(jittered(self._settings.listener.retry_interval_seconds, SPREAD, self._random.random()))

    async def _follow(self) -> None:
        async with aclosing(self.source.news(self._settings)) as news:
            async for item in news:
                if not self.state.is_listening:
                    self._step(self.state.connected())
                if item is not None:
                    self.received += 1
                    self.source.on_item(item)

    def _step(self, after: ListenerState, problem: TaskerError | None = None) -> None:
        before, self.state = self.state, after
        self.reconnections += after.is_listening and before.reception is MessageSource.POLLING_FALLBACK
        kind = notice(before, after, self._settings.listener.max_retry_attempts)
        if kind is not Notice.NONE:
            self._log_notice(kind, problem)
        if before.is_listening != after.is_listening:
            self._changed()

    def _log_notice(self, kind: Notice, problem: TaskerError | None) -> None:
        head = f"{self._settings.system_id}: {self.source.name}"
        if problem is None:
            level = logging.WARNING if self._told else logging.DEBUG
            self._told = False
            _log.log(level, "%s: %s", head, "listening" if kind is Notice.LISTENING else "listening again")
            return
        # an outage has log lines of its own; a single listener that cannot connect is logged only if that persists
        caused = self.source.away() or (kind is Notice.LOST and is_outage(problem))
        level = logging.DEBUG if caused else logging.WARNING
        self._told = self._told or not caused
        often = f" after {self.state.failures} attempts" if kind is Notice.STILL_LOST else ""
        _log.log(level, "%s: no notifications%s: %s", head, often, self._instead(problem))

    def _instead(self, problem: TaskerError) -> str:
        pause = self._pause()
        polling = f": polling every {pause * 1000:.0f} ms" if pause is not None else ""
        return f"{' '.join(problem.message.split())}{polling}{f'; {problem.hint}' if problem.hint else ''}"
