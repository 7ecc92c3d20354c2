"""An orchestrator: no handlers; it ends parked results, promotes retries, sweeps and wakes workers."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable, Callable

from tasker.app.following import result_followers
from tasker.app.parts import Parts
from tasker.app.system import SystemClock, new_uuid
from tasker.db.connection import Connection, listen
from tasker.errors import DatabaseError
from tasker.execution.settings import WorkerSettings
from tasker.messaging.queues import ready_channel
from tasker.messaging.service import MessagingService
from tasker.orchestration.consuming import ResultConsumer
from tasker.orchestration.parking import ParkedResults
from tasker.orchestration.results import Processor
from tasker.orchestration.sweep import Sweeper, SweepSettings
from tasker.orchestration.upkeep import Upkeep
from tasker.services.engine import Answer, Engine
from tasker.services.exchange import Advanced, Caller
from tasker.services.plans import PlanStore


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
    ) -> None:
        self.identity = new_uuid()
        self._url, self._messaging = url, messaging
        self._connections = [Connection(url, name="tasker results"), Connection(url, name="tasker upkeep")]
        settings = settings or WorkerSettings()
        results, upkeep = (Engine(connection, messaging, settings.rules) for connection in self._connections)
        hands = NoHands(self.identity, settings)
        plans = PlanStore(self._connections[1])
        self._consumer = ResultConsumer(
            ParkedResults(results, Processor(results, random), PlanStore(self._connections[0])),
            hands.caller,
            random,
            on_advanced=self._advanced,
        )
        self.upkeep = Upkeep(
            upkeep,
            Sweeper(upkeep, Processor(upkeep, random), plans, random, sweeps),
            hands,
            SystemClock(),
            random,
            on_advanced=self._advanced,
            sweep_seconds=(sweeps or SweepSettings()).interval_ms / 1000,
        )
        self._parts = Parts()

    async def start(self) -> None:
        """Begin to work. May be called twice. Raises `DatabaseUnavailable`, `MessagingError`."""
        if not self._parts.running:
            await self._messaging.ensure_orchestration_queues()
            followers = result_followers(self._messaging, self._consumer.wake)
            self._parts.start([self._consumer.run, self.upkeep.run, self._listen, *followers])

    async def stop(self) -> None:
        """End after what is under way. May be called twice."""
        await self._parts.stop()
        for connection in self._connections:
            await connection.close()

    async def _listen(self) -> None:
        """Wake-ups by NOTIFY; without them the polls remain."""
        while True:
            with contextlib.suppress(DatabaseError):
                async for _ in listen(self._url, [ready_channel("orchestration")]):
                    self._consumer.wake()
            await asyncio.sleep(1.0)
            self._consumer.wake()

    def _advanced(self, advanced: Advanced) -> None:
        if advanced.retry_in_ms is not None:
            self.upkeep.due_in(advanced.retry_in_ms)
        if advanced.sent:
            self.upkeep.wake(set(advanced.sent))
