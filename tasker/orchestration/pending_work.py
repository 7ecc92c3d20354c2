"""Work that is known to be due, and turns that one process takes at a time."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Mapping
from math import inf

from tasker.clock import Clock, Random, between
from tasker.engine.calls import Answer, Engine
from tasker.engine.exchange import AdvanceResult

SUSPECTED_MS = 1000
"""Time in which an answer that only seems to be lost may still arrive."""


class PendingWork:
    """Times of due steps, namespaces with sleeping workers to wake, and suspected lost claims."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._due_at: float = clock.monotonic()
        self._own_at: float = inf
        self._sleepers: set[str] = set()
        self._steps_at: dict[str, float] = {}
        self._suspected = False
        self._changed = asyncio.Event()

    @property
    def due_at(self) -> float:
        """Return when retries are promoted next, by the clock's monotonic time in seconds."""
        return self._due_at

    @property
    def suspected(self) -> bool:
        """Return True when there may be claims that this process does not know."""
        return self._suspected

    @property
    def is_own_due(self) -> bool:
        """Return True when a step is due that this process knows of: it promotes it without regard to others."""
        return self._own_at <= self._clock.monotonic()

    def due_in(self, milliseconds: float) -> None:
        """Record that a step will be due then, for which this process arranged the time."""
        moment = self._clock.monotonic() + milliseconds / 1000
        self._due_at, self._own_at = min(self._due_at, moment), min(self._own_at, moment)
        self._changed.set()

    def recheck_in(self, milliseconds: float) -> None:
        """Look for due steps then, unless that happens sooner."""
        self._due_at = min(self._due_at, self._clock.monotonic() + milliseconds / 1000)
        self._changed.set()

    def check_at(self, moment: float) -> None:
        """Look for due steps at this time of the clock, unless something due sooner is recorded afterwards."""
        self._due_at, self._own_at = moment, inf

    def wake(self, namespaces: set[str]) -> None:
        """Record that messages for these namespaces were committed just now: sleeping workers must be woken."""
        self._sleepers |= namespaces
        self._changed.set()

    def take_sleepers(self) -> list[str]:
        """Return and clear the namespaces to wake now. Record those again that could not be woken."""
        namespaces, self._sleepers = sorted(self._sleepers), set()
        return namespaces

    def wake_later(self, steps: Mapping[str, float]) -> None:
        """Record that other workers may claim these steps in so many milliseconds: sleeping ones must be woken then.

        Only those are woken that have not refused the step. So a worker that lacks its handler is not woken for what it
        has released or sent again itself.
        """
        now = self._clock.monotonic()
        self._steps_at |= {step: now + milliseconds / 1000 for step, milliseconds in steps.items()}
        self._changed.set()

    def take_steps(self) -> list[str]:
        """Return and clear the steps for which workers are to be woken now. Record them again if that fails."""
        now = self._clock.monotonic()
        steps = [step for step, moment in self._steps_at.items() if moment <= now]
        for step in steps:
            del self._steps_at[step]
        return steps

    def suspect(self) -> None:
        """Record that an answer of the database was lost: this process may not know all of its claims (rule 4)."""
        self._suspected = True
        self.recheck_in(SUSPECTED_MS)

    def compared(self, *, again: bool) -> None:
        """Record a comparison of this process's claims with the database's; `again` when some are still in doubt."""
        self._suspected = again

    def read(self) -> None:
        """Mark everything recorded so far as read: only later records end the next `wait`."""
        self._changed.clear()

    async def wait(self, seconds: float) -> None:
        """Return after so many seconds, or at the next record; at once when workers are to be woken."""
        now = self._clock.monotonic()
        seconds = min(seconds, min(self._steps_at.values(), default=inf) - now)
        if self._sleepers or seconds <= 0:
            return
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._changed.wait()


class FollowUp:
    """Dispatcher of the answers of writes: retries to come, steps that became ready, tasks that ended.

    `wake` makes this process poll for steps; `on_finished(task_uuid, state)` is called for every task that ended.
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
        if advanced.retry_in_ms is not None:
            self._schedule.due_in(advanced.retry_in_ms)
        if advanced.sent:
            self._wake()
            self._schedule.wake(set(advanced.sent))
        for task_uuid, state in advanced.finished.items():
            self._on_finished(task_uuid, state)


KEPT_TURNS = 12
"""Number of turns in a row before another process gets one.

A sweep checks several times before it repairs, but a process of another release may repair what this one cannot.
"""


class ExclusiveTurns:
    """This process's part in taking turns, one every `seconds`.

    The process that had the last turn asks first for the next one. The others ask later, so a process that died is
    replaced within one and a half intervals of its last turn. Each asks about once an interval; `on_answer` gets every
    answer.
    """

    def __init__(
        self,
        engine: Engine,
        kind: str,
        clock: Clock,
        random: Random,
        seconds: float,
        on_answer: Callable[[Answer], None] = lambda _: None,
    ) -> None:
        self._engine, self._clock, self._random, self._seconds = engine, clock, random, seconds
        self._on_answer = on_answer
        self._kind = f"{kind} {engine.messaging.provider_name()}"
        self._taken = 0
        self._renewed_at = 0.0

    async def take(self) -> tuple[bool, float]:
        """Return whether it is this process's turn, and after how many seconds to ask again."""
        answer = await self._ask(0.7 * self._seconds)
        if not answer["mine"]:
            self._taken = 0
            return False, self._seconds * between(1.25, 1.5, self._random.random()) - answer["since_ms"] / 1000
        self._renewed_at = self._clock.monotonic()
        self._taken = (self._taken + 1) % KEPT_TURNS
        least = 0.75 if self._taken else 1.5
        return True, self._seconds * between(least, least + 0.5, self._random.random())

    async def extend(self) -> None:
        """Extend the turn, so that no other process begins meanwhile."""
        if self._clock.monotonic() >= self._renewed_at + self._seconds / 2:
            self._renewed_at = self._clock.monotonic()
            await self._ask(0)

    async def _ask(self, after_seconds: float) -> Answer:
        answer = await self._engine.read("take_turn", {"kind": self._kind, "after_ms": round(after_seconds * 1000)})
        self._on_answer(answer)
        return answer
