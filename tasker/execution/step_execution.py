"""Everything that runs steps in one process, with a watchdog of its event loop.

It runs in a thread, because nothing on a blocked loop can run. The lease is renewed meanwhile by a thread of its own.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine, Sequence
from typing import Any

from tasker.clock import Clock
from tasker.errors import DatabaseError
from tasker.execution.attempt.attempt import ClaimLost
from tasker.execution.attempt.runner import AttemptRunner
from tasker.execution.claiming import Claimer
from tasker.execution.completer import BREAKER, BUFFER, Completer, CompletionBuffer
from tasker.execution.event_bus import AcceptedEventBus
from tasker.execution.report_writer import ReportWriter
from tasker.execution.worker import Worker

CHECKS_PER_LIMIT = 4
"""Number of checks, and of turns of the loop, within the time limit."""

_worker_log = logging.getLogger("tasker.worker")


class LoopWatchdog:
    """Watchdog that logs the stack when the loop has not turned for `limit_ms`, and the total time afterwards.

    `running()` names what runs on the loop and is called from the thread. `stalls` counts the warnings.
    """

    def __init__(self, clock: Clock, limit_ms: int, running: Callable[[], str | None]) -> None:
        self._clock, self._limit, self._running = clock, limit_ms / 1000, running
        self._turned = self._checked_at = clock.monotonic()
        self._stalled_since: float | None = None
        self._loop_thread = 0
        self.stalls = 0

    async def run(self) -> None:
        """Record the turns of the loop and check them from a thread, until cancelled."""
        self._loop_thread = threading.get_ident()
        self._turned = self._checked_at = self._clock.monotonic()
        stop = threading.Event()
        thread = threading.Thread(target=self._watch, args=(stop,), name="tasker-watchdog", daemon=True)
        thread.start()
        try:
            while True:
                self._turned = self._clock.monotonic()
                await asyncio.sleep(self._limit / CHECKS_PER_LIMIT)
        finally:
            stop.set()
            thread.join(timeout=1.0)

    def _watch(self, stop: threading.Event) -> None:
        while not stop.wait(self._limit / CHECKS_PER_LIMIT):
            self.check()

    def check(self) -> None:
        """Check the loop once, from the thread."""
        now, before, self._checked_at = self._clock.monotonic(), self._checked_at, self._clock.monotonic()
        if now - before > self._limit:
            self._stood_still(now - before)
        elif self._stalled_since is not None:
            self._see_whether_it_turns()
        elif now - (turned := self._turned) > self._limit:
            self._warn(turned, now)

    def _stood_still(self, seconds: float) -> None:
        """Restart the measurement: this thread did not run either, so the gap says nothing about the loop."""
        self._turned = self._checked_at
        _worker_log.warning(
            "process_stood_still ms=%d%s: it was stopped, or a handler holds the interpreter's lock",
            seconds * 1000,
            self._who(),
        )

    def _see_whether_it_turns(self) -> None:
        since = self._stalled_since
        if since is not None and self._turned > since:
            _worker_log.warning("event_loop_recovered after_ms=%d", (self._turned - since) * 1000)
            self._stalled_since = None

    def _warn(self, turned: float, now: float) -> None:
        self._stalled_since = turned  # not read again: the loop may have turned since
        frame = sys._current_frames().get(self._loop_thread)
        stack = "".join(traceback.format_stack(frame)) if frame else ""
        _worker_log.warning(
            "event_loop_blocked ms=%d%s: call blocking code in a handler that is no `async def`\n%s",
            (now - turned) * 1000,
            self._who(),
            stack.rstrip(),
        )
        self.stalls += 1

    def _who(self) -> str:
        return f" by {name}" if (name := self._running()) else ""


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
        if self.worker.starter is not None:
            self.worker.starter.bind(asyncio.get_running_loop())
        return [self.collector.run, self.claimer.run, self._writer.run, *self._watchdog()]

    def _watchdog(self) -> Sequence[Callable[[], Coroutine[Any, Any, None]]]:
        loop, lag_ms = asyncio.get_running_loop(), self.worker.settings.execution.loop_lag_warning_ms
        return [LoopWatchdog(self._clock, lag_ms, lambda: self.worker.claims.in_turn(loop)).run] if lag_ms else []

    def throttled_by(self) -> list[str]:
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
