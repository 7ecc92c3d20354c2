"""Waiting for a free thread or child process.

The time of a step runs from its claim. After a longer wait the time starts again when the handler is called. A step
that would wait so long that the sweep might take it away is released, without using an attempt, for another worker.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tasker.dataclasses import dataclass
from tasker.execution.attempt import listeners
from tasker.execution.attempt.attempt import Attempt, AttemptCancelFlag, ClaimLost, ClaimReleased, NoCapacity
from tasker.metrics import Histogram
from tasker.settings.execution import Lease
from tasker.settings.queues import HandOff


class CapacityGate:
    """Gate of `size` slots. `acquire` waits in order of arrival; `release` frees one."""

    def __init__(self, size: int) -> None:
        self._places = asyncio.Semaphore(size)
        self.waiting = 0
        """Number of waiters."""

    @property
    def full(self) -> bool:
        """Return True when the next caller has to wait."""
        return self._places.locked()

    async def acquire(self, flag: AttemptCancelFlag) -> bool:
        """Take a slot; return False when the attempt was stopped while it waited."""
        if not self.full:
            return await self._places.acquire()
        acquired = await self._wait(flag)
        if acquired and flag.is_set():  # both in the same turn of the loop
            self.release()
        return acquired and not flag.is_set()

    def release(self) -> None:
        self._places.release()

    async def _wait(self, flag: AttemptCancelFlag) -> bool:
        waiting = asyncio.ensure_future(self._places.acquire())
        flag.wake = lambda _: waiting.cancel()
        self.waiting += 1
        try:
            await asyncio.wait({waiting})
        except asyncio.CancelledError:
            if not waiting.cancel() and not waiting.cancelled():
                self.release()
            raise
        finally:
            self.waiting -= 1
            flag.wake = None
        return not waiting.cancelled()


LONGEST_WAIT_SECONDS = 60.0
"""Longest wait even of a step with a long timeout: another worker may be idle."""
WAIT_BOUNDS_MS = (1, 10, 50, 100, 250, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000)
"""Upper bounds of the histogram's buckets."""
WRITE_SECONDS = 10.0
"""Time limit of the write that restarts a step's time."""


@dataclass(frozen=True, slots=True)
class CapacityWaits:
    """Limits of the wait for a thread or process. Times are seconds.

    `grace` is how long after its timeout a step counts as running; a wait longer than `starvation` logs a warning.
    """

    grace: float = Lease.grace_ms / 1000
    starvation: float = HandOff.starvation_warning_threshold_ms / 1000

    def patience(self, limit: float) -> float:
        """Return how long a step with this handler time limit waits; half of the grace is left for its release."""
        return min(limit + self.grace / 2, LONGEST_WAIT_SECONDS)


class HandlerCapacity:
    """The slots of one `kind` ("thread" or "process").

    `starved` counts the steps with a logged warning, `at_once` those that did not wait; `waited` is a histogram of the
    other waits.
    """

    def __init__(self, size: int, kind: str, hint: str, waits: CapacityWaits) -> None:
        self._slots, self._size = CapacityGate(size), size
        self._kind, self._hint, self._waits = kind, hint, waits
        self.starved = self.at_once = 0
        self.waited = Histogram(
            "worker_handler_semaphore_wait_ms",
            "The wait of a claimed step for a thread or a child process; most do not wait.",
            WAIT_BOUNDS_MS,
        )
        self.since: dict[str, float] = {}
        """Start of the wait of each waiting step, by step identifier, in the loop's monotonic seconds."""

    @property
    def full(self) -> bool:
        """Return True when the next step has to wait."""
        return self._slots.full

    @property
    def waiting(self) -> int:
        return self._slots.waiting

    def release(self) -> None:
        self._slots.release()

    async def take(self, attempt: Attempt, limit: float) -> bool:
        """Wait for a slot; return False when the attempt's cancel flag says how it ends instead.

        `limit` is the time that the handler will have, in seconds.
        """
        if not self.full:
            self.at_once += 1
            return await self._slots.acquire(attempt.cancel)
        loop = asyncio.get_running_loop()
        since = loop.time()
        if not await self._wait(attempt, limit):
            return False
        if loop.time() - since <= self._waits.grace / 2:
            return True  # the remaining grace is enough
        begins = False
        try:
            begins = await report_start(attempt)
        finally:
            if not begins:
                self.release()
        return begins

    async def _wait(self, attempt: Attempt, limit: float) -> bool:
        later: Callable[..., asyncio.TimerHandle] = asyncio.get_running_loop().call_later
        reason = f"no {self._kind} of the worker was free for it in time"
        timers = (
            later(self._waits.starvation, self._warn_starved, attempt),
            later(self._waits.patience(limit), attempt.cancel.set, NoCapacity, reason),
        )
        self.since[attempt.claim.step_uuid] = since = asyncio.get_running_loop().time()
        try:
            return await self._slots.acquire(attempt.cancel)
        finally:
            self.since.pop(attempt.claim.step_uuid, None)
            self.waited.observe((asyncio.get_running_loop().time() - since) * 1000)
            for timer in timers:
                timer.cancel()

    def _warn_starved(self, attempt: Attempt) -> None:
        self.starved += 1
        listeners.warning(
            f"step_waits_for_{self._kind}",
            attempt.claim,
            seconds=self._waits.starvation,
            places=self._size,
            hint=self._hint,
        )


async def report_start(attempt: Attempt) -> bool:
    """Restart the step's time; return False when the handler must not start."""
    try:
        async with asyncio.timeout(WRITE_SECONDS):
            still_claimed = await attempt.writes.begin(attempt)
    except Exception as error:
        attempt.cancel.set(
            ClaimReleased, f"the start of its handler could not be reported: {str(error) or 'no answer'}"
        )
        return False
    if not still_claimed:
        attempt.cancel.set(ClaimLost, "it was taken away while it waited")
    return not attempt.cancel.is_set()
