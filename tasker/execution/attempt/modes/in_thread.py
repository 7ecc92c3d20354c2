"""Handlers in threads: they may block, and cannot be stopped."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from tasker.contracts.execution import Claim
from tasker.execution.attempt import log
from tasker.execution.attempt.call import call_blocking
from tasker.execution.attempt.modes.threads import Job, Threads
from tasker.execution.attempt.outcome import thread_leaked
from tasker.execution.attempt.placing import CapacityWaits, HandlerCapacity
from tasker.execution.attempt.values import Attempt, AttemptCancelled, Ending, UnreportedEnd
from tasker.registry.invocation import ResolvedHandler

HINT = "raise worker.execution.threads, or lower max_concurrent_handlers"


class ThreadExecutor:
    """Bounded pool of threads for handlers.

    After a timeout the thread continues, but the attempt ends: the thread is counted as leaked and replaced, and its
    return value is discarded.

    Parameters: `stop_grace` is the number of seconds that a handler has to notice that its worker closes or has lost
    the step; `waits` says how long steps wait for a thread; `on_leaked_thread` is called with the claim whenever a
    thread is leaked.
    """

    def __init__(
        self, size: int, stop_grace: float, waits: CapacityWaits, on_leaked_thread: Callable[[Claim], None]
    ) -> None:
        self.places = HandlerCapacity(size, "thread", HINT, waits)
        self._threads: Threads[Ending] = Threads(size, self.places.release)
        self._stop_grace = stop_grace
        self._on_leaked_thread = on_leaked_thread
        self._running: set[Callable[[], None]] = set()
        """Functions that abandon each thread that runs a handler."""

    @property
    def leaked(self) -> int:
        """Return the number of threads that run a handler whose attempt has ended."""
        return self._threads.leaked

    async def run(self, attempt: Attempt, handler: ResolvedHandler, limit: float) -> Ending:
        """Run a handler in a thread and wait for it at most `limit` seconds."""
        if not await self.places.take(attempt, limit):
            return thread_leaked(limit, handler.name)
        job = self._start(attempt, handler)
        abandon = partial(self._abandon, attempt, job)
        attempt.cancel.wake = partial(self._stop, abandon)
        timer = asyncio.get_running_loop().call_later(limit, abandon)
        self._running.add(abandon)
        try:
            ending = await job.done
            return thread_leaked(limit, handler.name) if ending is None else ending
        except asyncio.CancelledError:
            abandon()
            raise
        finally:
            timer.cancel()
            attempt.cancel.wake = None
            self._running.discard(abandon)

    def close(self) -> None:
        """End the idle threads and abandon the busy ones, those of cancelled attempts included."""
        for abandon in list(self._running):
            abandon()
        self._threads.close()

    def _start(self, attempt: Attempt, handler: ResolvedHandler) -> Job[Ending]:
        try:
            return self._threads.start(partial(call_blocking, attempt, handler))
        except RuntimeError:  # the system refuses new threads
            self.places.release()
            raise

    def _abandon(self, attempt: Attempt, job: Job[Ending]) -> None:
        attempt.cancel.time_is_up()
        if self._threads.abandon(job):
            log.warning("handler_thread_leaked", attempt.claim, leaked=self._threads.leaked)
            self._on_leaked_thread(attempt.claim)

    def _stop(self, abandon: Callable[[], None], end: type[UnreportedEnd]) -> None:
        """Limit the wait for the thread when the step may belong to another worker.

        The handler can check `context.cancelled`. A cancelled attempt waits for it until its timeout.
        """
        if end is not AttemptCancelled:
            asyncio.get_running_loop().call_later(self._stop_grace, abandon)
