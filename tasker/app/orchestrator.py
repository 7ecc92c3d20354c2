"""An orchestrator: no handlers; it works on the three orchestration queues, promotes retries, sweeps, wakes workers."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable

from tasker.contracts.plan import RetryPolicy
from tasker.db.connection import Connection
from tasker.db.listening import Notification
from tasker.execution.settings import WorkerSettings
from tasker.lifecycle.deployment import ORCHESTRATOR_EVENTS, EventSettings, Health
from tasker.lifecycle.pressure import DepthLimits
from tasker.messaging.service import MessagingService
from tasker.orchestration.consuming import Inbox, QueueActor
from tasker.orchestration.finalizing import Finalizations
from tasker.orchestration.parking import ParkedResults
from tasker.orchestration.queue_pauses import PausableInbox, QueuePauses
from tasker.orchestration.requests import TaskRequests
from tasker.orchestration.results import Processor
from tasker.orchestration.sweep import Sweeper, SweepSettings
from tasker.orchestration.upkeep import Upkeep
from tasker.process.health import process_health
from tasker.process.heartbeat import Heartbeat, Registration
from tasker.process.listening.event_system import EventSystem
from tasker.process.listening.following import ORCHESTRATOR_CHANNELS, PAUSES_CHANNEL, notifications, orchestration_news
from tasker.process.supervisor import Supervisor
from tasker.process.system import SystemClock, new_task_uuid, new_uuid
from tasker.resilience.registry import Breakers
from tasker.services.engine.calls import Answer, Engine
from tasker.services.engine.exchange import AdvanceResult, Caller
from tasker.services.engine.plans import PlanStore
from tasker.services.pressure import Admission
from tasker.services.submission import CONTEXT_LIMIT_BYTES, Drafts


class NoHands:
    """A process that runs no steps."""

    def __init__(self, identity: str, settings: WorkerSettings) -> None:
        self._caller = Caller(
            identity, window=settings.window, timeout_ms=settings.timeout_ms, grace_ms=settings.grace_ms
        )

    def caller(self, slots: int = 0) -> Caller:
        """This process, without a slot."""
        return self._caller

    def held(self) -> list[tuple[str, int]]:
        """Nothing."""
        return []

    async def offer(self, ask: Callable[[int], Awaitable[Answer]]) -> Answer:
        """Ask without a slot to give."""
        return await ask(0)


class Orchestrator:
    """One orchestrator process: `start`, then it works until `stop`. Any number may run side by side."""

    def __init__(
        self,
        url: str,
        messaging: MessagingService,
        *,
        settings: WorkerSettings | None = None,
        sweeps: SweepSettings | None = None,
        breakers: Breakers | None = None,
        events: EventSettings = ORCHESTRATOR_EVENTS,
        context_limit_bytes: int = CONTEXT_LIMIT_BYTES,
        depth_limits: DepthLimits | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        self.identity = new_uuid()
        self._url, self._messaging = url, messaging
        self._connections = [Connection(url, name="tasker results"), Connection(url, name="tasker upkeep")]
        settings = settings or WorkerSettings()
        results, upkeep = (Engine(connection, messaging, settings.rules) for connection in self._connections)
        hands = NoHands(self.identity, settings)
        plans = PlanStore(self._connections[1])
        clock = SystemClock()
        self.breakers = breakers or Breakers(clock)
        self.events = EventSystem(events, messaging.capabilities, clock, random, self._look_again)
        self._registry = Heartbeat(
            upkeep, Registration(self.identity, settings.lease_ms, "orchestrator", backend=messaging.provider_name())
        )
        store = PlanStore(self._connections[0], retry)
        drafts = Drafts(new_task_uuid, window=settings.window, context_limit_bytes=context_limit_bytes)
        admission = Admission(results, clock, depth_limits) if depth_limits else None
        names = messaging.names
        inboxes: dict[str, Inbox] = {
            names.step_results: ParkedResults(results, Processor(results, random), store),
            names.task_requests: TaskRequests(results, store, drafts, clock, admission),
            names.task_finalizations: Finalizations(results),
        }
        self.pauses = QueuePauses(upkeep, self._wake_actors)
        pausable = [PausableInbox(inbox, queue, self.pauses) for queue, inbox in inboxes.items()]
        self._actors = [
            QueueActor(inbox, hands.caller, self.events, random, on_advanced=self._advanced) for inbox in pausable
        ]
        self.upkeep = Upkeep(
            upkeep,
            Sweeper(upkeep, Processor(upkeep, random), plans, random, sweeps),
            hands,
            clock,
            random,
            breaker=self.breakers.task_readiness,
            on_advanced=self._advanced,
            on_turn=self.pauses.told,
            sweep_seconds=(sweeps or SweepSettings()).interval_ms / 1000,
        )
        self._supervisor = Supervisor()

    async def start(self) -> None:
        """Begin to work. May be called twice. Raises `DatabaseUnavailable`, `MessagingError`."""
        if not self._supervisor.running:
            await self._messaging.ensure_orchestration_queues()
            heard = notifications(self._messaging, self._connections[1], self._url, ORCHESTRATOR_CHANNELS, self._heard)
            followers = self.events.follow([heard, *orchestration_news(self._messaging, self._wake_actors)])
            actors = [actor.run for actor in self._actors]
            self._supervisor.start(
                [self._registry.run, self.pauses.run, *actors, self.upkeep.run, self._watch, *followers]
            )

    async def stop(self) -> None:
        """End after what is under way: no message stays hidden. May be called twice."""
        await asyncio.gather(*(actor.drain() for actor in self._actors))
        await self._supervisor.stop()
        await self._registry.leave()
        for connection in self._connections:
            await connection.close()

    def health(self) -> Health:
        """How the process does: its ears, breakers and parts (B-7)."""
        return process_health(self.events.health(), self.breakers.health(), self._supervisor.recent_crashes())

    async def _watch(self) -> None:
        await self.events.watch(self.health)

    def _heard(self, notification: Notification) -> None:
        channel, _ = notification
        self.pauses.look_again() if channel == PAUSES_CHANNEL else self._wake_actors()

    def _look_again(self) -> None:
        self.pauses.look_again()
        self._wake_actors()

    def _wake_actors(self) -> None:
        for actor in self._actors:
            actor.wake()

    def _advanced(self, advanced: AdvanceResult) -> None:
        if advanced.retry_in_ms is not None:
            self.upkeep.due_in(advanced.retry_in_ms)
        if advanced.sent:
            self.upkeep.wake(set(advanced.sent))
