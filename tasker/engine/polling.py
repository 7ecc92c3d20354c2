"""Polling intervals of a queue, adapted to wake-ups and to the work found."""

from __future__ import annotations

import asyncio
import contextlib
import math
from contextlib import AbstractContextManager
from typing import Protocol

from tasker.clock import BackoffPolicy, Random, jittered
from tasker.dataclasses import dataclass

SHORTEST_SECONDS = 0.02
SPREAD = 0.25
"""Jitter of a pause, as a share of it."""


@dataclass(slots=True)
class QueuePoll:
    """One poll of a queue; `found` is the number of messages it found."""

    found: int = 0


class PollPolicy(Protocol):
    """Pause between two polls, and statistics of what the polls find."""

    def longest_pause(self) -> float | None:
        """Return the maximum number of seconds until the next poll, or None to poll only after a wake-up."""
        ...

    def poll(self, *, polled: bool) -> AbstractContextManager[QueuePoll]:
        """Count the poll made inside; `polled` is True if no wake-up announced work."""
        ...


class QueuePoller:
    """Timer of one poller: waits for a wake-up or, if the process polls, for jittered pauses that double up to the
    longest one.

    Call `clear`, poll, then `wait`: a wake-up after the clear ends the wait at once.
    """

    def __init__(self, policy: PollPolicy, random: Random) -> None:
        self._policy, self._random = policy, random
        self._event = asyncio.Event()
        self._pause = SHORTEST_SECONDS

    def wake(self) -> None:
        """Announce that there may be work."""
        self._event.set()

    def clear(self) -> None:
        """Discard earlier wake-ups."""
        self._event.clear()

    def begin(self) -> None:
        """Reset the next pause to the shortest one, because there was work."""
        self._pause = SHORTEST_SECONDS

    def poll(self, *, polled: bool) -> AbstractContextManager[QueuePoll]:
        """Count the poll made inside; `polled` is True if no wake-up announced work."""
        return self._policy.poll(polled=polled)

    async def wait(self, at_most: float = math.inf) -> bool:
        """Wait for the next, longer pause of at most `at_most` seconds. Return True if a wake-up ended it."""
        longest = self._policy.longest_pause()
        if longest is not None:
            self._pause = BackoffPolicy(SHORTEST_SECONDS, longest).after(self._pause)
        pause = min(at_most, math.inf if longest is None else self._pause)
        seconds = None if pause == math.inf else jittered(pause, SPREAD, self._random.random())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()
        return self._event.is_set()
