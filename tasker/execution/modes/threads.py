"""Threads for blocking handlers.

Cheaper than `concurrent.futures` (one future per job instead of two, one wake-up of the loop for all jobs that end
together), and its threads are daemons: a stuck handler does not keep the process alive.
"""

from __future__ import annotations

import asyncio
import contextvars
import itertools
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from queue import SimpleQueue
from typing import Generic, TypeVar

from tasker.execution.attempt import listeners
from tasker.execution.attempt.attempt import Attempt, AttemptCancelled, Ending, UnreportedEnd
from tasker.execution.attempt.call import call_blocking
from tasker.execution.attempt.capacity import CapacityWaits, HandlerCapacity
from tasker.execution.attempt.settle import thread_leaked
from tasker.handlers.claims import Claim
from tasker.handlers.registry.invocation import ResolvedHandler

T = TypeVar("T")


class Job(Generic[T]):
    """One call in a thread. `done` is None when the job was abandoned before the call returned."""

    __slots__ = ("call", "context", "done", "ended", "holds_place", "leaked")

    def __init__(self, call: Callable[[], T], done: asyncio.Future[T | None]) -> None:
        self.call = call
        self.context = contextvars.copy_context()
        self.done = done
        self.ended = False
        self.leaked = False
        self.holds_place = True


class Threads(Generic[T]):
    """Pool that runs calls in at most `size` threads, plus at most `size` leaked ones.

    A leaked thread runs a call that was abandoned. It is replaced, so that capacity is not lost, until `size` threads
    are leaked; from then on a leaked thread keeps its slot until it ends. Everything but the calls themselves happens
    on the event loop's thread. Calls must not raise.

    Parameters: `free` is called once for every job, when its slot may be given to another.
    """

    def __init__(self, size: int, free: Callable[[], None]) -> None:
        self.size = size
        self.leaked = 0
        self._free = free
        self._idle = 0
        self._names = itertools.count(1)
        self._jobs: SimpleQueue[Job[T] | None] = SimpleQueue()
        self._ended: deque[tuple[Job[T], T]] = deque()
        self._collecting = False

    def start(self, call: Callable[[], T]) -> Job[T]:
        """Pass the call to an idle thread or a new one. The caller must have acquired a slot for it."""
        loop = asyncio.get_running_loop()
        job = Job(call, loop.create_future())
        if self._idle:
            self._idle -= 1
        else:
            self._spawn(loop)
        self._jobs.put(job)
        return job

    def abandon(self, job: Job[T]) -> bool:
        """Stop waiting for the job and count its thread as leaked; return False when the call has returned already."""
        if job.ended or job.leaked:
            return False
        job.leaked = True
        self.leaked += 1
        if self.leaked <= self.size:
            self._free_place(job)
        if not job.done.done():
            job.done.set_result(None)
        return True

    def close(self) -> None:
        """End the idle threads. A leaked thread ends with its call, or with the process."""
        for _ in range(self._idle):
            self._jobs.put(None)
        self._idle = 0

    def _spawn(self, loop: asyncio.AbstractEventLoop) -> None:
        name = f"tasker-handler-{next(self._names)}"
        threading.Thread(target=self._work, args=(loop,), name=name, daemon=True).start()

    def _work(self, loop: asyncio.AbstractEventLoop) -> None:
        while (job := self._jobs.get()) is not None:
            self._ended.append((job, job.context.run(job.call)))
            del job
            if not self._wake(loop):
                return

    def _wake(self, loop: asyncio.AbstractEventLoop) -> bool:
        if self._collecting:
            return True
        self._collecting = True
        try:
            loop.call_soon_threadsafe(self._collect)
        except RuntimeError:  # the loop is closed: nothing waits for the result
            return False
        return True

    def _collect(self) -> None:
        self._collecting = False  # first: a job that ends from here on schedules another turn
        while self._ended:
            job, value = self._ended.popleft()
            job.ended = True
            if job.holds_place:
                self._free_place(job)
            self._late() if job.leaked else self._deliver(job, value)

    def _deliver(self, job: Job[T], value: T) -> None:
        self._idle += 1
        if not job.done.done():
            job.done.set_result(value)

    def _late(self) -> None:
        self.leaked -= 1
        self._jobs.put(None)  # a replacement runs already, so this thread must end

    def _free_place(self, job: Job[T]) -> None:
        job.holds_place = False
        self._free()


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
        attempt.cancel.began = True
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
            listeners.warning("handler_thread_leaked", attempt.claim, leaked=self._threads.leaked)
            self._on_leaked_thread(attempt.claim)

    def _stop(self, abandon: Callable[[], None], end: type[UnreportedEnd]) -> None:
        """Limit the wait for the thread when the step may belong to another worker.

        The handler can check `context.cancelled`. A cancelled attempt waits for it until its timeout.
        """
        if end is not AttemptCancelled:
            asyncio.get_running_loop().call_later(self._stop_grace, abandon)
