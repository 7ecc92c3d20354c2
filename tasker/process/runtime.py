"""A running worker with the engine in its process: start, supervision and stop."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator, Sequence

from tasker.db.connection import Statements
from tasker.db.listening import Notification
from tasker.engine.waiters import CHANNEL
from tasker.errors import DatabaseError
from tasker.execution.attempt.attempt import ClaimReleased
from tasker.execution.fast.eager_start import EagerStart
from tasker.execution.fast.local_tasks import LocalTask
from tasker.execution.step_execution import StepExecution
from tasker.messaging.listening_modes import ListeningHealth
from tasker.messaging.queues import ready_channel
from tasker.orchestration.queue_actors import QueueActors
from tasker.orchestration.upkeep import Upkeep
from tasker.plugins.hook_arguments import ProcessInfo
from tasker.plugins.host import BackgroundJobs
from tasker.process.context import ProcessContext
from tasker.process.health import process_health
from tasker.process.listener import Source
from tasker.process.listening_sources import (
    NOTIFICATIONS,
    PAUSES_CHANNEL,
    TIMERS_CHANNEL,
    WORKER_CHANNELS,
    notifications,
    result_news,
    step_news,
)
from tasker.process.registration import WorkerRegistration
from tasker.process.stopping import GIVE_BACK_SECONDS, STOP_GRACE_SECONDS, to_its_end
from tasker.process.supervisor import Supervisor


class Runtime:
    """One worker: it works from `start` until `stop`. Both may be called twice.

    `on_elsewhere(tasks)` is called with tasks that other processes cancelled, or ended while `waiter`, the program in
    this process, waits for them; with an empty sequence when some may have been missed.
    """

    def __init__(
        self,
        context: ProcessContext,
        execution: StepExecution,
        actors: QueueActors,
        upkeep: Upkeep,
        membership: WorkerRegistration,
        on_elsewhere: Callable[[Sequence[str]], None],
        waiter: str | None = None,
    ) -> None:
        self.settings, self.breakers, self.events = context.settings, context.breakers, context.events
        self.execution, self.actors, self.upkeep, self.worker = execution, actors, upkeep, execution.worker
        self.namespaces, self.plugins, self.limits = membership.namespaces, context.plugins, context.limits
        self.supervisor = Supervisor(context.schedule.suspect)  # a crash may interrupt a claim
        self._context, self._membership, self._on_elsewhere = context, membership, on_elsewhere
        self._channels = (*WORKER_CHANNELS, f"{CHANNEL}{waiter}") if waiter else WORKER_CHANNELS
        self._begun, self._stopped, self._backgrounds = False, False, BackgroundJobs(context.plugins)
        self.starter = EagerStart(self.worker, self.wake, on_lost=context.schedule.suspect)

    @contextlib.contextmanager
    def whole_run(self) -> Iterator[LocalTask]:
        """Yield a starter for one submission whose report is wanted; its task is tracked until the end."""
        run = LocalTask(self.starter, self.worker.whole_runs)
        try:
            yield run
        finally:
            run.leave()

    async def start(self) -> None:
        """Register the worker and start working. Raises `DatabaseUnavailable`."""
        if not self.supervisor.running:
            self._begun = True
            await self._begin()
            self._context.plugins.notify("tasker_process_started", self._info())
            self._backgrounds.start(self._context.url)

    def _info(self) -> ProcessInfo:
        return ProcessInfo("worker", self.worker.identity, tuple(self.namespaces))

    async def _begin(self) -> None:
        if self.actors.actors:  # first: while the broker is away, registering would be of no use
            await self._context.messaging.ensure_orchestration_queues()
        listeners = self.events.follow(self._sources(), self._recheck)
        await self._membership.join(self.fenced, self.execution.lease_renewal)
        working = [*self.execution.services(), self.upkeep.run, self._context.engines.notices.run, self._watch]
        working.append(self._membership.keep_listed)
        self.supervisor.start([*working, *self.actors.services(), *listeners])

    def _sources(self) -> list[Source]:
        messaging, connection, url = self._context.messaging, self._context.engine.connection, self._context.url
        sources = [notifications(messaging, connection, url, self._channels, self._on_notification)]
        sources += step_news(messaging, self.namespaces, self.wake)
        return [*sources, *(result_news(messaging, self.actors.wake) if self.actors.actors else ())]

    async def serve(self, namespace: str) -> None:
        """Serve this namespace too, and handlers that were loaded since the last call."""
        if namespace not in self.namespaces:
            self.namespaces.append(namespace)
            if self.supervisor.running:
                sources = step_news(self._context.messaging, [namespace], self.wake)
                self.supervisor.start(self.events.follow(sources, self._recheck))
        elif self._membership.up_to_date:
            return
        if self.supervisor.running:
            await self._membership.update()
            self.wake()

    def health(self) -> ListeningHealth:
        """Return the health of the process: event listening, breakers, crashed services, and throttled claims."""
        crashes, throttled_by = self.supervisor.recent_crashes(), self.execution.throttled_by()
        return process_health(self.events.health(), self.breakers.health(), crashes, throttled_by)

    @property
    def connection(self) -> Statements:
        """Return the connection for queries about the process; it is usable before the start, too."""
        return self._context.engine.connection

    @property
    def is_listening(self) -> bool:
        """Return True when database notifications have been proven to arrive."""
        listener = self.events.listeners.get(NOTIFICATIONS)
        return listener is not None and listener.state.is_listening

    async def _watch(self) -> None:
        await self.events.watch(self.health)

    def wake(self) -> None:
        """Poll soon: there is work in the queue (a task was submitted in this process)."""
        self.execution.claimer.wake()

    async def stop(
        self, grace_seconds: float = STOP_GRACE_SECONDS, give_back_seconds: float = GIVE_BACK_SECONDS
    ) -> None:
        """Claim nothing more, let running steps end within the grace, release the rest, store the results.

        A cancellation ends the grace. After a failed start, it cleans up.
        """
        if self._stopped or not self._begun:
            return
        self._stopped, worked = True, self.supervisor.running
        try:
            if worked:
                await self._settle(grace_seconds)
        finally:  # a cancelled caller cannot stop it again
            await to_its_end(self._leave(worked, give_back_seconds))

    async def _settle(self, grace_seconds: float) -> None:
        self._context.plugins.notify("tasker_process_stopping", self._info())
        self.execution.stop_claiming()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(grace_seconds):
                await self._membership.drain()
                await self.execution.settled()

    async def _leave(self, worked: bool, give_back_seconds: float) -> None:
        await self._give_back(give_back_seconds)
        await self._end()
        if worked:
            self._context.plugins.notify("tasker_process_stopped", self._info())
            await self._context.plugins.settle()
            self._context.plugins.log_failures()

    async def _give_back(self, seconds: float) -> None:
        self.worker.claims.stop_all(ClaimReleased)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):  # drained, so that no message stays hidden
                await asyncio.gather(self.actors.drain(), self.upkeep.drain(), self.execution.settled())
                with contextlib.suppress(DatabaseError):  # for the steps that were just released
                    await self.upkeep.wake_sleepers()

    async def _end(self) -> None:
        await self.supervisor.stop()
        await asyncio.gather(self._membership.leave(), self.execution.close())
        await self._context.engines.close()
        await self._backgrounds.stop()

    def _recheck(self) -> None:
        if not self.is_listening:  # another component may have met the new server first and reconnected the worker
            self.worker.forget()
        self.execution.claimer.start_over()
        self.actors.recheck()
        self._on_elsewhere(())

    def _on_notification(self, notification: Notification) -> None:
        channel, payload = notification
        if channel == "tasker_work":
            if payload == self.worker.identity or payload.removeprefix("@") in self.namespaces:
                self.wake()
        elif channel == ready_channel("orchestration"):
            self.actors.wake()
        elif channel == PAUSES_CHANNEL:
            self.actors.pauses.recheck()
        elif channel == TIMERS_CHANNEL:
            self.upkeep.on_notification(payload)
        elif channel == "tasker_cancelled":
            self.worker.claims.stop_task(payload)
            self._on_elsewhere([payload])
        else:
            self._on_elsewhere(payload.split(","))

    def fenced(self) -> None:
        """Give up this registration after the lease was lost, and join as a new worker: others may run its steps."""
        self.execution.fence()
        if not self._stopped:
            self.supervisor.start([self._begin_anew])

    async def _begin_anew(self) -> None:
        await self._membership.give_up(self.supervisor)
        await self._begin()
        self.execution.unfence()
