"""Waiting for a thread or a child process: for how long, and what becomes of the time that a claimed step has.

The time of a step runs from its claim. One that had to wait has its time counted anew when its handler is called; one
that would wait for so long that a sweep might take it away goes back, without an attempt, for a worker with a place.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.defaults import STARVATION_MS, STEP_GRACE_MS
from tasker.contracts.metrics import Histogram
from tasker.execution.attempt import log
from tasker.execution.attempt.slots import CapacityGate
from tasker.execution.attempt.values import Attempt, ClaimLost, ClaimReleased, NoCapacity

LONGEST_WAIT_SECONDS = 60.0
"""A step with a long timeout does not wait longer than this either: another worker may be idle."""
WAIT_BOUNDS_MS = (1, 10, 50, 100, 250, 500, 1000, 2000, 5000, 10_000, 30_000, 60_000)
"""The upper ends of the buckets of waits."""
WRITE_SECONDS = 10.0
"""How long the write that counts the time anew may take."""


@dataclass(frozen=True, slots=True)
class CapacityWaits:
    """How the steps of a worker wait for a place. Times are seconds.

    `grace` is how long after its timeout a step counts as running; one that waits longer than `starvation` is warned
    of.
    """

    grace: float = STEP_GRACE_MS / 1000
    starvation: float = STARVATION_MS / 1000

    def patience(self, limit: float) -> float:
        """How long a step waits whose handler may take `limit` seconds. Half of the grace is left to give it back."""
        return min(limit + self.grace / 2, LONGEST_WAIT_SECONDS)


class HandlerCapacity:
    """The places of one `kind` ("thread", "process"). `starved` counts the steps that were warned of.

    `at_once` are those that had not to wait, `waited` says how long the others did.
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
        """Since when each step that waits now does, by its identifier, in the loop's monotonic seconds."""

    @property
    def full(self) -> bool:
        """True when the next step has to wait."""
        return self._slots.full

    @property
    def waiting(self) -> int:
        """How many steps wait."""
        return self._slots.waiting

    def release(self) -> None:
        """Give a place back."""
        self._slots.release()

    async def take(self, attempt: Attempt, limit: float) -> bool:
        """Wait for a place; False when the attempt's cancel flag says how it ends instead.

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
            return True  # what is left of the grace is enough
        begins = False
        try:
            begins = await _begins(attempt)
        finally:
            if not begins:
                self.release()
        return begins

    async def _wait(self, attempt: Attempt, limit: float) -> bool:
        later: Callable[..., asyncio.TimerHandle] = asyncio.get_running_loop().call_later
        reason = f"no {self._kind} of the worker was free for it in time"
        timers = (
            later(self._waits.starvation, self._starves, attempt),
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

    def _starves(self, attempt: Attempt) -> None:
        self.starved += 1
        log.warning(
            f"step_waits_for_{self._kind}",
            attempt.claim,
            seconds=self._waits.starvation,
            places=self._size,
            hint=self._hint,
        )


async def _begins(attempt: Attempt) -> bool:
    """Count the step's time from now on; False when it must not start."""
    try:
        async with asyncio.timeout(WRITE_SECONDS):
            ours = await attempt.writes.begin(attempt)
    except Exception as error:
        attempt.cancel.set(ClaimReleased, f"the start of its handler could not be told: {str(error) or 'no answer'}")
        return False
    if not ours:
        attempt.cancel.set(ClaimLost, "it was taken away while it waited")
    return not attempt.cancel.is_set()
