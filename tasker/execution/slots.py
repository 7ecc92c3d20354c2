"""How many more steps a worker may take on."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from tasker.contracts.dataclasses import dataclass
from tasker.contracts.hook_arguments import ClaimsThrottled

MOST_KEPT = 16
"""Slots kept from a claim at most."""
_log = logging.getLogger("tasker.execution")


@dataclass(slots=True)
class Reservation:
    """Slots set aside for a request under way, and how many of them run a step in the end."""

    slots: int
    used: int = 0


class Slots:
    """Counts running steps and reservations against the worker's concurrency. Used on the event loop only.

    `on_held` is called when less is taken on for a reason, and when that is gone.
    """

    def __init__(self, concurrency: int, on_held: Callable[[ClaimsThrottled], None] | None = None) -> None:
        self.concurrency, self._on_held = concurrency, on_held
        self.running = 0
        self._reserved = 0
        self._bringing = False
        self._submits = False
        self.promised = 0
        """How many results wait to be brought: the steps that they hand over will take as many slots."""
        self._held: dict[str, int] = {}
        self._told: set[str] = set()
        self._freed = asyncio.Event()
        self._closed = False
        self.holds: Counter[str] = Counter()
        """How often nothing or little more was taken on, by reason."""

    def close(self) -> None:
        """No slot is free any more: the worker takes on nothing."""
        self._closed = True
        self._freed.set()

    @property
    def free(self) -> int:
        """Slots that nobody uses or has reserved."""
        limit = min(self.concurrency, *self._held.values()) if self._held else self.concurrency
        return 0 if self._closed else max(0, limit - self.running - self._reserved)

    @property
    def claimable_slots(self) -> int:
        """Free slots that a claim may set aside. The others are for the children of results that are brought
        meanwhile or wait for that, and the first steps of tasks that are submitted meanwhile, which would go through
        the queue; and while results are brought, few are not worth a claim."""
        free = max(0, self.free - self.promised)
        if self._bringing and free < self.concurrency // 2:
            return 0
        if self._submits:  # several requests at once leave what one would, and not a part of a part
            return max(0, free - _some(free + self._reserved))
        return free - _some(free) if self.running or self._bringing else free

    def throttle(self, reason: str, at_most: int = 0, *, level: int = logging.WARNING) -> None:
        """Until `lift`, take on nothing beyond `at_most` steps. What runs goes on; messages stay for other workers.

        `level` is that of the line in the log: lower where the cause has one already.
        """
        if self._held.get(reason) == at_most:
            return
        self.holds[reason] += reason not in self._held
        self._held[reason] = at_most
        if level >= logging.INFO:
            self._told.add(reason)
        _log.log(level, "claims_throttled reason=%s at_most=%s", reason, at_most)
        self._tell(reason, at_most)
        self._freed.set()

    def is_throttled(self, reason: str) -> bool:
        """True between `hold` and `lift` for this reason."""
        return reason in self._held

    def unthrottle(self, reason: str) -> None:
        """The reason is gone."""
        if self._held.pop(reason, None) is not None:
            _log.log(logging.INFO if reason in self._told else logging.DEBUG, "claims_resumed reason=%s", reason)
            self._told.discard(reason)
            self._tell(reason, None)
            self._freed.set()

    def _tell(self, reason: str, at_most: int | None) -> None:
        if self._on_held is not None:
            self._on_held(ClaimsThrottled(reason, at_most))

    def reserve(self, limit: int | None = None) -> int:
        """Set aside all free slots (up to `limit`) for a request under way; how many there were."""
        count = self.free if limit is None else min(self.free, limit)
        self._reserved += count
        return count

    def settle(self, reserved: int, used: int) -> None:
        """The request has come back: `used` of the reserved slots now run a step."""
        self._reserved -= reserved
        self.running += used
        self._freed.set()

    def reserve_for_submission(self) -> None:
        """Tasks are submitted here: from now on no request sets aside all free slots, so that their first steps find
        some, whatever is under way when the next task comes."""
        self._submits = True

    @contextmanager
    def reserve_for_flush(self, results: int, *, waits: bool) -> Iterator[Reservation]:
        """Set aside free slots for steps that are handed over for so many results; their number is set inside.

        All of them where nothing else runs (but what `leave_room` asks for), else no more than half where so many
        results are not likely to fill them.
        `waits`: for a task that somebody may hold for long. Claims don't wait for that.
        """
        if self.running or self.promised:
            limit = max(results, self.free // 2)
        else:
            limit = self.free - _some(self.free) if self._submits else self.free
        reservation = Reservation(self.reserve(limit))
        self._bringing = not waits
        try:
            yield reservation
        finally:
            self._bringing = False
            self.settle(reservation.slots, reservation.used)

    def finish(self, count: int = 1) -> None:
        """Steps have ended."""
        self.running -= count
        self._freed.set()

    async def wait_free(self) -> None:
        """Return when at least one slot is free, or none will be any more."""
        while not self.free and not self._closed:
            self._freed.clear()
            await self._freed.wait()

    async def wait_claimable(self) -> None:
        """Return when a claim may set slots aside, or none will be free any more."""
        while not self.claimable_slots and not self._closed:
            self._freed.clear()
            await self._freed.wait()

    @property
    def idle(self) -> bool:
        """True when no step runs and no request is under way that may bring one."""
        return not self.running and not self._reserved

    async def wait_idle(self) -> None:
        """Return when it is idle."""
        while not self.idle:
            self._freed.clear()
            await self._freed.wait()


def _some(free: int) -> int:
    """So many of the free slots are left to whoever comes meanwhile."""
    return min(free // 4, MOST_KEPT)
