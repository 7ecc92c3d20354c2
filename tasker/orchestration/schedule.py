"""What upkeep has to do next, noted by whoever learns of it in this process; and what the answers of writes add."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable

from tasker.contracts.clock import Clock
from tasker.services.engine.exchange import AdvanceResult


class PendingWork:
    """When retries are due, which namespaces have sleeping workers to wake, and whether claims may have been lost."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_at: float = clock.monotonic()
        self._sleepers: set[str] = set()
        self._suspected = False
        self._changed = asyncio.Event()

    @property
    def due_at(self) -> float:
        """When retries are looked for next, by the clock's monotonic time in seconds."""
        return self._due_at

    @property
    def suspected(self) -> bool:
        """True when there may be claims that nobody in this process knows of."""
        return self._suspected

    def due_in(self, milliseconds: float) -> None:
        """Something will be due then: a retry that this process arranged."""
        self._due_at = min(self._due_at, self._clock.monotonic() + milliseconds / 1000)
        self._changed.set()

    def look_at(self, moment: float) -> None:
        """Look for retries at this time of the clock, and not before something is noted that is due sooner."""
        self._due_at = moment

    def wake(self, namespaces: set[str]) -> None:
        """Hints for these namespaces were committed just now: wake workers that sleep."""
        self._sleepers |= namespaces
        self._changed.set()

    def take_sleepers(self) -> list[str]:
        """The namespaces to wake now. What cannot be woken is to be noted again."""
        namespaces, self._sleepers = sorted(self._sleepers), set()
        return namespaces

    def suspect(self) -> None:
        """An answer of the database was lost: there may be claims that nobody here knows of (rule 4)."""
        self._suspected = True
        self._changed.set()

    def compared(self, *, again: bool) -> None:
        """The claims of this process were compared with the database's; `again` when some are still in doubt."""
        self._suspected = again

    def read(self) -> None:
        """What was noted so far is being dealt with: only what comes later ends the next `wait`."""
        self._changed.clear()

    async def wait(self, seconds: float) -> None:
        """Return after so many seconds, or as soon as something is noted; at once when somebody is to be woken."""
        if self._sleepers or seconds <= 0:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()


class FollowUp:
    """Passes on what the answers of writes say: retries to come, steps that became ready, tasks that ended.

    `wake` makes this process look for steps; `on_finished(task_uuid, state)` is called for every task that ended.
    """

    def __init__(
        self,
        schedule: PendingWork,
        *,
        wake: Callable[[], None] = lambda: None,
        on_finished: Callable[[str, str], None] = lambda task, state: None,
    ) -> None:
        self._schedule, self._wake, self._on_finished = schedule, wake, on_finished

    def advanced(self, advanced: AdvanceResult) -> None:
        """Act on one answer."""
        if advanced.retry_in_ms is not None:
            self._schedule.due_in(advanced.retry_in_ms)
        if advanced.sent:
            self._wake()
            self._schedule.wake(set(advanced.sent))
        for task_uuid, state in advanced.finished.items():
            self._on_finished(task_uuid, state)
