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
    """Runs handlers in a bounded pool of threads.

    A timed-out thread goes on; the attempt ends without it, the thread is counted as leaked and replaced, and what it
    returns in the end is discarded.

    Parameters: `stop_grace` is how many seconds a handler has to notice that its worker closes or has lost the step;
    `waits` says how steps wait for a thread; `on_leaked_thread` is called with the claim each time a thread is left
    behind.
    """

    def __init__(
        self, size: int, stop_grace: float, waits: CapacityWaits, on_leaked_thread: Callable[[Claim], None]
    ) -> None:
        self.places = HandlerCapacity(size, "thread", HINT, waits)
        self._threads: Threads[Ending] = Threads(size, self.places.release)
        self._stop_grace = stop_grace
        self._on_leaked_thread = on_leaked_thread
        self._running: set[Callable[[], None]] = set()
        """What leaves behind each of the threads that run a handler."""

    @property
    def leaked(self) -> int:
        """How many threads run a handler that nobody waits for."""
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
        """Let the idle threads end, and leave the others behind: one that was cancelled is still waited for."""
        for abandon in list(self._running):
            abandon()
        self._threads.close()

    def _start(self, attempt: Attempt, handler: ResolvedHandler) -> Job[Ending]:
        try:
            return self._threads.start(partial(call_blocking, attempt, handler))
        except RuntimeError:  # the system gives no more threads
            self.places.release()
            raise

    def _abandon(self, attempt: Attempt, job: Job[Ending]) -> None:
        attempt.cancel.time_is_up()
        if self._threads.abandon(job):
            log.warning("handler_thread_leaked", attempt.claim, leaked=self._threads.leaked)
            self._on_leaked_thread(attempt.claim)

    def _stop(self, abandon: Callable[[], None], end: type[UnreportedEnd]) -> None:
        """The thread may look at `context.cancelled`. It is waited for, but not for long when the step is not ours."""
        if end is not AttemptCancelled:
            asyncio.get_running_loop().call_later(self._stop_grace, abandon)
