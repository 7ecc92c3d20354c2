"""The slots of a worker: how many more steps it may run."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tasker.dataclasses import dataclass
from tasker.plugins.hook_arguments import ClaimsThrottled

MOST_KEPT = 16
"""Largest number of slots that a claim leaves free."""
_log = logging.getLogger("tasker.execution")


@dataclass(slots=True)
class Reservation:
    """Slots reserved for a request under way, and how many of them run a step in the end."""

    slots: int
    used: int = 0


class Slots:
    """Counter of running steps and reservations against the worker's concurrency. Use it on the event loop only.

    `on_throttled` is called when claims are throttled for a reason, and when the reason is gone.
    """

    def __init__(self, concurrency: int, on_throttled: Callable[[ClaimsThrottled], None] | None = None) -> None:
        self.concurrency, self._on_throttled = concurrency, on_throttled
        self.running = 0
        self._reserved = 0
        self._bringing = False
        self._submits = False
        self.reserved_for_results = 0
        """Number of results waiting to be written: their hand-offs will need as many slots."""
        self.awaited = False
        """True while a step that uses several slots waits for them: nothing is claimed meanwhile."""
        self._held: dict[str, int] = {}
        self._told: set[str] = set()
        self._freed = asyncio.Event()
        self._closed = False
        self.holds: Counter[str] = Counter()
        """Number of times claims were throttled, by reason."""

    def close(self) -> None:
        """Close all slots: the worker claims nothing more."""
        self._closed = True
        self._freed.set()

    @property
    def free(self) -> int:
        """Return the number of slots that are neither used nor reserved."""
        limit = min(self.concurrency, *self._held.values()) if self._held else self.concurrency
        return 0 if self._closed else max(0, limit - self.running - self._reserved)

    @property
    def claimable_slots(self) -> int:
        """Return how many free slots a claim may reserve.

        The others are for hand-offs of results that are being written or wait for a write, and for first steps of tasks
        submitted meanwhile; those steps would otherwise go through the queue. During a write, a claim of few steps is
        not worth its cost.
        """
        free = max(0, self.free - self.reserved_for_results)
        if self._bringing and free < self.concurrency // 2:
            return 0
        if self._submits:  # several requests at once leave as much as one would
            return max(0, free - _submission_reserve(free + self._reserved))
        return free - _submission_reserve(free) if self.running or self._bringing else free

    def throttle(self, reason: str, at_most: int = 0, *, level: int = logging.WARNING) -> None:
        """Run at most `at_most` steps until `unthrottle`. Running steps continue; messages stay for other workers.

        `level` is the level of the log line: lower if the cause is logged already.
        """
        if self._held.get(reason) == at_most:
            return
        self.holds[reason] += reason not in self._held
        self._held[reason] = at_most
        if level >= logging.INFO:
            self._told.add(reason)
        _log.log(level, "claims_throttled reason=%s at_most=%s", reason, at_most)
        self._notify_throttled(reason, at_most)
        self._freed.set()

    def is_throttled(self, reason: str) -> bool:
        """Return True between `throttle` and `unthrottle` for this reason."""
        return reason in self._held

    def unthrottle(self, reason: str) -> None:
        """Remove the limit for this reason."""
        if self._held.pop(reason, None) is not None:
            _log.log(logging.INFO if reason in self._told else logging.DEBUG, "claims_resumed reason=%s", reason)
            self._told.discard(reason)
            self._notify_throttled(reason, None)
            self._freed.set()

    def _notify_throttled(self, reason: str, at_most: int | None) -> None:
        if self._on_throttled is not None:
            self._on_throttled(ClaimsThrottled(reason, at_most))

    def reserve(self, limit: int | None = None) -> int:
        """Reserve all free slots (up to `limit`) for a request under way; return how many there were."""
        count = self.free if limit is None else min(self.free, limit)
        self._reserved += count
        return count

    def settle(self, reserved: int, used: int) -> None:
        """End a reservation: `used` of the reserved slots now run a step."""
        self._reserved -= reserved
        self.running += used
        self._freed.set()

    def reserve_for_submission(self) -> None:
        """Keep some slots free from now on for the first steps of tasks that are submitted in this process."""
        self._submits = True

    @contextmanager
    def reserve_for_flush(self, results: int, *, waits: bool) -> Iterator[Reservation]:
        """Reserve free slots for the hand-offs of `results` results; set the number used inside the context.

        If nothing else runs, all slots are reserved (except those kept for submissions). Otherwise at most half are
        reserved, unless there are more results. `waits` means that a task may be locked for long: claims do not wait
        then.
        """
        if self.running or self.reserved_for_results:
            limit = max(results, self.free // 2)
        else:
            limit = self.free - _submission_reserve(self.free) if self._submits else self.free
        reservation = Reservation(self.reserve(limit))
        self._bringing = not waits
        try:
            yield reservation
        finally:
            self._bringing = False
            self.settle(reservation.slots, reservation.used)

    def finish(self, count: int = 1) -> None:
        self.running -= count
        self._freed.set()

    def add(self, count: int) -> None:
        """Count more slots for a step that was claimed with one, also if they are not free yet."""
        self.running += count

    @property
    def has_room(self) -> bool:
        """Return True if all claimed steps together, and the requests under way, fit into the slots."""
        return self.running + self._reserved <= self.concurrency

    async def wait_room(self) -> None:
        """Return when `has_room` is true."""
        while not self.has_room:
            self._freed.clear()
            await self._freed.wait()

    async def wait_free(self) -> None:
        """Return when at least one slot is free, or the slots are closed."""
        while not self.free and not self._closed:
            self._freed.clear()
            await self._freed.wait()

    async def wait_claimable(self) -> None:
        """Return when a claim may reserve slots, or the slots are closed."""
        while not self.claimable_slots and not self._closed:
            self._freed.clear()
            await self._freed.wait()

    @property
    def idle(self) -> bool:
        """Return True when no step runs and no request is under way that may start one."""
        return not self.running and not self._reserved

    async def wait_idle(self) -> None:
        """Return when the worker is idle."""
        while not self.idle:
            self._freed.clear()
            await self._freed.wait()


def _submission_reserve(free: int) -> int:
    """Return how many of the free slots stay free for other requests."""
    return min(free // 4, MOST_KEPT)
