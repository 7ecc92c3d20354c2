"""An orchestrator without handlers: consumes the orchestration queues, promotes retries, sweeps, wakes workers."""

from __future__ import annotations

import asyncio

from tasker.db.listening import Notification
from tasker.messaging.listening_modes import ListeningHealth
from tasker.orchestration.queue_actors import QueueActors
from tasker.orchestration.upkeep import Upkeep
from tasker.plugins.hook_arguments import ProcessInfo
from tasker.plugins.host import BackgroundJobs
from tasker.process.context import ProcessContext
from tasker.process.health import process_health
from tasker.process.heartbeat import ProcessHeartbeat
from tasker.process.listener import Source
from tasker.process.listening_sources import (
    ORCHESTRATOR_CHANNELS,
    PAUSES_CHANNEL,
    TIMERS_CHANNEL,
    notifications,
    orchestration_news,
)
from tasker.process.stopping import to_its_end
from tasker.process.supervisor import Supervisor


class Orchestrator:
    """One orchestrator process: it works from `start` until `stop`. Any number may run side by side."""

    def __init__(
        self, context: ProcessContext, identity: str, heartbeat: ProcessHeartbeat, actors: QueueActors, upkeep: Upkeep
    ) -> None:
        self.identity = identity
        self.breakers, self.events, self.actors, self.upkeep = context.breakers, context.events, actors, upkeep
        self.supervisor, self.plugins, self.limits = Supervisor(), context.plugins, context.limits
        self._context, self._heartbeat = context, heartbeat
        self._info, self._backgrounds = ProcessInfo("orchestrator", identity, ()), BackgroundJobs(context.plugins)

    async def start(self) -> None:
        """Start working. May be called twice. Raises `DatabaseUnavailable`, `MessagingError`."""
        if not self.supervisor.running:
            await self._context.messaging.ensure_orchestration_queues()
            await self.limits.declare()
            listeners = self.events.follow(self._sources(), self.actors.recheck)
            actors = self.actors.services()
            parts = [self._heartbeat.run, *actors, self.upkeep.run, self._context.engines.notices.run, self._watch]
            self.supervisor.start([*parts, *listeners])
            self._context.plugins.notify("tasker_process_started", self._info)
            self._backgrounds.start(self._context.url)

    def _sources(self) -> list[Source]:
        messaging, connection, url = self._context.messaging, self._context.engine.connection, self._context.url
        notified = notifications(messaging, connection, url, ORCHESTRATOR_CHANNELS, self._on_notification)
        return [notified, *orchestration_news(messaging, self.actors.wake)]

    async def stop(self) -> None:
        """Stop after the work under way: no message stays hidden. May be called twice.

        A cancellation does not cut it off.
        """
        await to_its_end(self._end())

    async def _end(self) -> None:
        worked = self.supervisor.running
        if worked:
            self._context.plugins.notify("tasker_process_stopping", self._info)
        await asyncio.gather(self.actors.drain(), self.upkeep.drain())
        await self.supervisor.stop()
        await self._heartbeat.leave()
        await self._context.engines.close()
        await self._backgrounds.stop()
        if worked:
            self._context.plugins.notify("tasker_process_stopped", self._info)
            await self._context.plugins.settle()
            self._context.plugins.log_failures()

    def health(self) -> ListeningHealth:
        """Return the health of the process: event listening, breakers, and crashed services."""
        return process_health(self.events.health(), self.breakers.health(), self.supervisor.recent_crashes())

    async def _watch(self) -> None:
        await self.events.watch(self.health)

    def _on_notification(self, notification: Notification) -> None:
        channel, payload = notification
        if channel == PAUSES_CHANNEL:
            self.actors.pauses.recheck()
        elif channel == TIMERS_CHANNEL:
            self.upkeep.on_notification(payload)
        else:
            self.actors.wake()
