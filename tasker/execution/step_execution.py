"""All that runs steps in one process: the worker, what claims for it, and what brings its results."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from tasker.contracts.clock import Clock
from tasker.errors import DatabaseError
from tasker.execution.attempt.runner import AttemptRunner
from tasker.execution.attempt.values import ClaimLost
from tasker.execution.claiming import Claimer
from tasker.execution.collecting import BREAKER, Completer
from tasker.execution.completion_buffer import BUFFER, CompletionBuffer
from tasker.execution.publishing.bus import AcceptedEventBus
from tasker.execution.reporting.writer import ReportWriter
from tasker.execution.watchdog import LoopWatchdog
from tasker.execution.worker import Worker

_log = logging.getLogger("tasker.execution")
FENCED = "fenced"
"""Reason for which nothing is claimed: the lease was lost."""
LEASE = "lease"
"""Reason for which nothing is claimed: the lease cannot be renewed now."""
RUNNER_CLOSE_SECONDS = 1.0
"""How long threads and child processes are waited for at the end."""
LAST_WRITE_SECONDS = 1.0
"""How long storing the last reports may take."""


class StepExecution:
    """Runs steps until it is told to stop claiming, and says when all that it had is settled."""

    def __init__(
        self,
        worker: Worker,
        claimer: Claimer,
        buffer: CompletionBuffer,
        collector: Completer,
        runner: AttemptRunner,
        clock: Clock,
        bus: AcceptedEventBus,
        writer: ReportWriter,
    ) -> None:
        self.worker, self.claimer, self.collector, self.runner = worker, claimer, collector, runner
        self.buffer, self._clock, self.bus, self._writer = buffer, clock, bus, writer
        self._lease_problem = ""

    def services(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        """What runs while the process does."""
        return [self.collector.run, self.claimer.run, self._writer.run, *self._watchdog()]

    def _watchdog(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        loop, lag_ms = asyncio.get_running_loop(), self.worker.settings.loop_lag_ms
        return [LoopWatchdog(self._clock, lag_ms, lambda: self.worker.claims.in_turn(loop)).run] if lag_ms else []

    def held_by(self) -> list[str]:
        """The reasons for which nothing is claimed now."""
        held = [reason for reason in (BREAKER, BUFFER, FENCED) if self.worker.slots.is_throttled(reason)]
        return [*held, f"the lease cannot be renewed: {self._lease_problem}"] if self._lease_problem else held

    def lease_renewal(self, problem: str) -> None:
        """Claim nothing while the lease cannot be renewed for this reason: it would be lost with the lease. "": it is
        renewed."""
        self._lease_problem = problem
        slots = self.worker.slots
        slots.throttle(LEASE, level=logging.DEBUG) if problem else slots.unthrottle(LEASE)

    def fence(self) -> None:
        """The lease was lost: what runs here belongs to others now. Stop it, and claim nothing until `unfence`."""
        self.worker.slots.throttle(FENCED, level=logging.DEBUG)  # told where it gives up
        self.worker.claims.stop_all(ClaimLost)

    def unfence(self) -> None:
        """There is a lease again."""
        self.worker.claims.wait_until_idle()
        self.worker.slots.unthrottle(FENCED)

    def stop_claiming(self) -> None:
        """Take on nothing more; what runs goes on."""
        self.worker.slots.close()
        self.claimer.drain()

    async def settled(self) -> None:
        """Return when every handler has ended, every result is stored, and no claim is under way."""
        while self.worker.busy or not self.worker.slots.idle:
            await self.worker.slots.wait_idle()
            await self.buffer.flushed()
            await asyncio.sleep(0)

    async def close(self) -> None:
        """End the threads and child processes of handlers; bring the last events, and store what was said last."""
        await self.runner.close(RUNNER_CLOSE_SECONDS)
        self.bus.close()
        try:
            async with asyncio.timeout(LAST_WRITE_SECONDS):
                await self._writer.write()
        except (DatabaseError, TimeoutError):
            pass  # the process tells of that elsewhere
        except Exception:  # a defect of ours: the connections behind it must be closed all the same
            _log.exception("reports_not_stored: what handlers have said last is lost")
