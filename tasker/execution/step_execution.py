"""The components that run steps in one process: the worker, its claimer and its completer."""

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
"""Reason under which claims are throttled after the lease was lost."""
LEASE = "lease"
"""Reason under which claims are throttled while the lease cannot be renewed."""
RUNNER_CLOSE_SECONDS = 1.0
"""Time limit for threads and child processes at the end, in seconds."""
LAST_WRITE_SECONDS = 1.0
"""Time limit for storing the last handler output, in seconds."""


class StepExecution:
    """The worker with everything that runs its steps, until it stops claiming and all its claims are settled."""

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
        return [self.collector.run, self.claimer.run, self._writer.run, *self._watchdog()]

    def _watchdog(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        loop, lag_ms = asyncio.get_running_loop(), self.worker.settings.loop_lag_ms
        return [LoopWatchdog(self._clock, lag_ms, lambda: self.worker.claims.in_turn(loop)).run] if lag_ms else []

    def held_by(self) -> list[str]:
        """Return the reasons for which nothing is claimed now."""
        held = [reason for reason in (BREAKER, BUFFER, FENCED) if self.worker.slots.is_throttled(reason)]
        return [*held, f"the lease cannot be renewed: {self._lease_problem}"] if self._lease_problem else held

    def lease_renewal(self, problem: str) -> None:
        """Throttle claims while the lease cannot be renewed for this reason: they would be lost with the lease.

        An empty text means that the lease is renewed.
        """
        self._lease_problem = problem
        slots = self.worker.slots
        slots.throttle(LEASE, level=logging.DEBUG) if problem else slots.unthrottle(LEASE)

    def fence(self) -> None:
        """Stop every handler after the lease was lost, and claim nothing until `unfence`.

        Other workers may run the steps now.
        """
        self.worker.slots.throttle(FENCED, level=logging.DEBUG)  # a warning is logged when the lease is given up
        self.worker.claims.stop_all(ClaimLost)

    def unfence(self) -> None:
        """Resume claiming with a new lease."""
        self.worker.claims.wait_until_idle()
        self.worker.slots.unthrottle(FENCED)

    def stop_claiming(self) -> None:
        """Claim nothing more; running steps continue."""
        self.worker.slots.close()
        self.claimer.drain()

    async def settled(self) -> None:
        """Return when every handler has ended, every result is stored, and no claim is under way."""
        while self.worker.busy or not self.worker.slots.idle:
            await self.worker.slots.wait_idle()
            await self.buffer.flushed()
            await asyncio.sleep(0)

    async def close(self) -> None:
        """Stop handlers' threads and child processes, deliver the last events, and store the last handler output."""
        await self.runner.close(RUNNER_CLOSE_SECONDS)
        self.bus.close()
        try:
            async with asyncio.timeout(LAST_WRITE_SECONDS):
                await self._writer.write()
        except (DatabaseError, TimeoutError):
            pass  # the process logs database outages elsewhere
        except Exception:  # a defect must not keep the connections open
            _log.exception("reports_not_stored: what handlers have said last is lost")
