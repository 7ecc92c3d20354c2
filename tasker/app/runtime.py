"""A running worker with the engine in its process: how the parts are made, started, watched and stopped."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable, Sequence

from tasker.db.connection import Connection
from tasker.db.listening import Notification
from tasker.execution.attempt.placing import Waits
from tasker.execution.attempt.runner import AttemptRunner
from tasker.execution.claiming import Claimer
from tasker.execution.collecting import BREAKER, BUFFER, Collector
from tasker.execution.held import GivenBack
from tasker.execution.lease import LeaseKeeper
from tasker.execution.settings import WorkerSettings
from tasker.execution.watchdog import LoopWatchdog
from tasker.execution.worker import Worker
from tasker.handler import HandlerRegistry
from tasker.lifecycle.deployment import Health
from tasker.messaging.queues import ready_channel
from tasker.messaging.service import MessagingService
from tasker.orchestration.consuming import QueueActor
from tasker.orchestration.parking import ParkedResults, Parking
from tasker.orchestration.queue_pauses import PausableInbox, QueuePauses
from tasker.orchestration.results import Processor
from tasker.orchestration.sweep import Sweeper, SweepSettings
from tasker.orchestration.upkeep import Upkeep
from tasker.process.health import process_health
from tasker.process.heartbeat import Registration, tell
from tasker.process.leasing import give_up, keep_lease
from tasker.process.listening.event_system import EventSystem
from tasker.process.listening.following import PAUSES_CHANNEL, WORKER_CHANNELS, notifications, result_news, step_news
from tasker.process.releasing import give_back, release_held
from tasker.process.stopping import GIVE_BACK_SECONDS
from tasker.process.supervisor import Part, Supervisor
from tasker.process.system import SystemClock, new_uuid
from tasker.resilience.registry import Breakers
from tasker.services.engine.calls import Answer, Engine
from tasker.services.engine.exchange import AdvanceResult
from tasker.services.engine.plans import PlanStore

FENCED = "fenced"
"""Reason for which nothing is claimed: the lease was lost."""


class Runtime:
    """One worker: `start`, then it works until `stop`. Both may be called twice.

    `on_finished(task_uuid, state)` hears of every task that ends by what this process does; `on_elsewhere(task_uuid)`
    of tasks that others ended or cancelled. With the result path `queued`, `consume` says whether this process ends
    parked results as well. `runner` makes what runs the handlers.
    """

    def __init__(
        self,
        url: str,
        messaging: MessagingService,
        registry: HandlerRegistry,
        namespaces: Sequence[str],
        *,
        settings: WorkerSettings | None = None,
        sweeps: SweepSettings | None = None,
        breakers: Breakers | None = None,
        consume: bool = True,
        runner: Callable[..., AttemptRunner] = AttemptRunner,
        on_finished: Callable[[str, str], None] = lambda task, state: None,
        on_elsewhere: Callable[[str], None] = lambda task: None,
    ) -> None:
        self.settings = settings or WorkerSettings()
        self.namespaces: list[str] = list(namespaces)
        self._registry, self._registered_revision = registry, -1
        self._url, self._messaging, self._consume = url, messaging, consume
        self._on_finished, self._on_elsewhere = on_finished, on_elsewhere
        self._clock = SystemClock()
        self.breakers = breakers or Breakers(self._clock)
        self._supervisor = Supervisor(lambda: self._upkeep.suspect())  # perhaps in the middle of a claim
        self._connections = {name: Connection(url, name=f"tasker {name}") for name in ("claim", "result", "upkeep")}
        claims, results, upkeep = (
            Engine(connection, messaging, self.settings.rules) for connection in self._connections.values()
        )
        self.plans = PlanStore(self._connections["upkeep"])
        self._upkeep_engine = upkeep
        self._processor = Processor(results, random)
        self._runner = runner(
            registry=registry,
            clock=self._clock,
            breakers=self.breakers,
            default_timeout=self.settings.timeout_ms / 1000,
            threads=self.settings.threads,
            waits=Waits(self.settings.grace_ms / 1000, self.settings.starvation_ms / 1000),
        )
        sink = Parking(results, random) if self.settings.result_path == "queued" else self._processor
        self._collector = Collector(
            sink,
            self._release,
            self.breakers.completion,
            on_advanced=self._advanced,
            on_lost=lambda: self._upkeep.suspect(),
        )
        self.worker = Worker(
            new_uuid(),
            engine=claims,
            plans=self.plans,
            runner=self._runner,
            settings=self.settings,
            on_ended=self._collector.add,
            on_given_back=self._collector.give_back,
        )
        self._collector.worker = self.worker
        self.events = EventSystem(self.settings.events, messaging.capabilities, self._clock, random, self._look_again)
        self._claimer = Claimer(
            claims,
            self.worker,
            self.namespaces,
            self.events,
            random,
            self._release_held,
            on_lost=lambda: self._upkeep.suspect(),
        )
        self._pauses = QueuePauses(upkeep, lambda: self._consumer.wake())
        self._upkeep = Upkeep(
            upkeep,
            Sweeper(upkeep, Processor(upkeep, random), self.plans, random, sweeps),
            self.worker,
            self._clock,
            random,
            breaker=self.breakers.task_readiness,
            on_advanced=self._advanced,
            on_turn=self._pauses.told,
            sweep_seconds=(sweeps or SweepSettings()).interval_ms / 1000,
        )
        parked = ParkedResults(upkeep, Processor(upkeep, random), self.plans)
        inbox = PausableInbox(parked, messaging.names.step_results, self._pauses)
        self._consumer = QueueActor(inbox, self.worker.caller, self.events, random, on_advanced=self._advanced)
        self._lease: LeaseKeeper | None = None
        self._stopped = False

    async def start(self) -> None:
        """Register the worker and begin to work. Raises `DatabaseUnavailable`."""
        if not self._supervisor.running:
            await self._begin()

    async def _begin(self) -> None:
        parts = await self._parts_to_run()  # first: when the broker is away, nobody is registered for nothing
        await self._register("start")
        self._lease = keep_lease(self._url, self._clock, self.worker, self._fenced)
        self._supervisor.start(parts)

    async def _parts_to_run(self) -> list[Part]:
        parts: list[Part] = [self._collector.run, self._claimer.run, self._upkeep.run, self._watch]
        if lag := self.settings.loop_lag_ms:
            loop = asyncio.get_running_loop()
            parts.append(LoopWatchdog(self._clock, lag, lambda: self.worker.in_turn(loop)).run)
        connection = self._connections["upkeep"]
        heard = notifications(self._messaging, connection, self._url, WORKER_CHANNELS, self._heard)
        sources = [heard, *step_news(self._messaging, self.namespaces, self._claimer.wake)]
        if self.settings.result_path == "queued" and self._consume:
            await self._messaging.ensure_orchestration_queues()
            parts += [self._pauses.run, self._consumer.run]
            sources += result_news(self._messaging, self._consumer.wake)
        return [*parts, *self.events.follow(sources)]

    async def serve(self, namespace: str) -> None:
        """Take work of this namespace too, and of handlers that were loaded since the last call."""
        if namespace not in self.namespaces:
            self.namespaces.append(namespace)
            if self._supervisor.running:
                self._supervisor.start(self.events.follow(step_news(self._messaging, [namespace], self._claimer.wake)))
        elif self._registered_revision == self._registry.revision:
            return
        if self._supervisor.running:
            await self._register("serve")
            self._claimer.wake()

    async def _register(self, action: str) -> None:
        """Enter the registry, or change what is said there: whatever was not resolved before may be now."""
        revision = self._registry.revision
        entry = Registration(
            self.worker.identity,
            self.settings.lease_ms,
            namespaces=self.namespaces,
            callables=self._registry.served_handlers(),
            name=self.settings.name,
            concurrency=self.settings.concurrency,
            backend=self._messaging.provider_name(),
        )
        answer = await self._upkeep_engine.read("worker", entry.args(action))
        self.worker.namespace_ids = sorted(answer["namespaces"].values())
        self.worker.unserved.clear()
        self._registered_revision = revision

    async def _tell_registry(self, action: str) -> None:
        await tell(self._upkeep_engine, Registration(self.worker.identity, 0), action)

    def health(self) -> Health:
        """How the process does: its ears, breakers and parts, and whether it takes on steps (B-7)."""
        held = [reason for reason in (BREAKER, BUFFER, FENCED) if self.worker.slots.is_held(reason)]
        return process_health(self.events.health(), self.breakers.health(), self._supervisor.recent_crashes(), held)

    async def _watch(self) -> None:
        await self.events.watch(self.health)

    def wake(self) -> None:
        """There is work in the queue (a task was submitted in this process)."""
        self._claimer.wake()

    async def stop(self, grace_seconds: float = 10.0) -> None:
        """Claim nothing more, let running steps end within the grace, give the rest back, store the results."""
        if self._stopped or not self._supervisor.running:
            return
        self._stopped = True
        self.worker.slots.close()
        self._claimer.drain()
        await self._tell_registry("drain")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_seconds):
                await self._settled()
        self.worker.release_all()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(GIVE_BACK_SECONDS):  # drained, so that no message stays hidden
                await asyncio.gather(self._consumer.drain(), self._settled())
        await self._end()

    async def _settled(self) -> None:
        """Every handler has ended, every result is stored, and no claim is under way."""
        while self.worker.busy or not self.worker.slots.idle:
            await self.worker.slots.wait_idle()
            await self._collector.flushed()
            await asyncio.sleep(0)

    async def _end(self) -> None:
        await self._supervisor.stop()
        if self._lease:
            await asyncio.to_thread(self._lease.stop)
        await self._tell_registry("stop")
        await self._runner.close(1.0)
        for connection in self._connections.values():
            await connection.close()

    def _look_again(self) -> None:
        self._claimer.start_over()
        self._pauses.look_again()
        self._consumer.wake()

    def _heard(self, notification: Notification) -> None:
        channel, payload = notification
        if channel == "tasker_work":
            if payload.removeprefix("@") in self.namespaces:
                self._claimer.wake()
        elif channel == ready_channel("orchestration"):
            self._consumer.wake()
        elif channel == PAUSES_CHANNEL:
            self._pauses.look_again()
        else:
            if channel == "tasker_cancelled":
                self.worker.stop_task(payload)
            self._on_elsewhere(payload)

    def _advanced(self, advanced: AdvanceResult) -> None:
        if advanced.retry_in_ms is not None:
            self._upkeep.due_in(advanced.retry_in_ms)
        if advanced.sent:
            self._claimer.wake()
            self._upkeep.wake(set(advanced.sent))
        for task_uuid, state in advanced.finished.items():
            self._on_finished(task_uuid, state)

    async def _release(self, given_back: Sequence[GivenBack]) -> None:
        due = await give_back(self._processor, self.worker.caller(), given_back)
        if due is not None:
            self._upkeep.due_in(due)

    async def _release_held(self, namespace_ids: Sequence[int], slots: int) -> Answer:
        answer = await release_held(self._upkeep_engine, self.worker.caller(slots), namespace_ids)
        advanced = AdvanceResult()
        advanced.add({**answer, "claims": None})
        self._advanced(advanced)
        return answer

    def _fenced(self) -> None:
        """The lease was lost: whatever runs here belongs to others now. Give it up and be a new worker."""
        self.worker.slots.hold(FENCED, level=logging.DEBUG)  # told where it gives up
        self.worker.stop_steps([step for step, _ in self.worker.held()])
        if not self._stopped:
            self._supervisor.start([self._restart])

    async def _restart(self) -> None:
        if self._lease:
            await give_up(self.worker, self._supervisor, self._lease, self._upkeep_engine)
        self.worker.identity = new_uuid()
        await self._begin()
        self.worker.slots.lift(FENCED)
