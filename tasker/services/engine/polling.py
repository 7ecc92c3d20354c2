"""When a queue is polled again: as this process learns of work."""

from __future__ import annotations

import asyncio
import contextlib
import math
from contextlib import AbstractContextManager
from typing import Protocol

from tasker.contracts.backoff import BackoffPolicy, jittered
from tasker.contracts.clock import Random
from tasker.contracts.dataclasses import dataclass

SHORTEST_SECONDS = 0.02
SPREAD = 0.25
"""Share of a pause by which processes differ."""


@dataclass(slots=True)
class QueuePoll:
    """One poll of a queue; `found` says how much was there."""

    found: int = 0


class PollPolicy(Protocol):
    """How long to wait between two polls, and the count of what they find."""

    def longest_pause(self) -> float | None:
        """Seconds at most until the next poll; None: not before something is announced."""
        ...

    def poll(self, *, polled: bool) -> AbstractContextManager[QueuePoll]:
        """Count the poll made inside; `polled` when nothing announced work."""
        ...


class QueuePoller:
    """Waits for an announcement or, where the process polls, for pauses that double up to the longest, with jitter.

    `clear`, poll, then `wait`: what is announced after the clear ends the wait at once.
    """

    def __init__(self, policy: PollPolicy, random: Random) -> None:
        self._policy, self._random = policy, random
        self._event = asyncio.Event()
        self._pause = SHORTEST_SECONDS

    def wake(self) -> None:
        """There may be work."""
        self._event.set()

    def clear(self) -> None:
        """Forget what was announced so far."""
        self._event.clear()

    def begin(self) -> None:
        """There was work: the next pause is short again."""
        self._pause = SHORTEST_SECONDS

    def poll(self, *, polled: bool) -> AbstractContextManager[QueuePoll]:
        """Count the poll made inside; `polled` when nothing announced work."""
        return self._policy.poll(polled=polled)

    async def wait(self, at_most: float = math.inf) -> bool:
        """The next, longer pause, of `at_most` seconds. True when it was ended by an announcement."""
        longest = self._policy.longest_pause()
        if longest is not None:
            self._pause = BackoffPolicy(SHORTEST_SECONDS, longest).after(self._pause)
        pause = min(at_most, math.inf if longest is None else self._pause)
        seconds = None if pause == math.inf else jittered(pause, SPREAD, self._random.random())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._event.wait()
        return self._event.is_set()
