"""The clockwork of every process: retries that are due, sweeps, waking whoever sleeps (rule 14).

A round goes through the breaker `task_readiness`: open, it is skipped, and everything else goes on (A-63).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Protocol

from tasker.contracts.clock import Clock, Random
from tasker.errors import DatabaseError, DatabaseUnavailable, MessagingError
from tasker.orchestration.changes import simple_change
from tasker.orchestration.sweep import Sweeper
from tasker.orchestration.turns import Turns
from tasker.resilience.guard import Guard
from tasker.services.engine.calls import Answer, Engine
from tasker.services.engine.exchange import AdvanceResult, Caller

HESITATION_SECONDS = 0.02
"""The first pause when retries are due in tasks that others hold; it doubles until there is progress."""


class Hands(Protocol):
    """Who can run steps in this process, if anybody."""

    def caller(self, slots: int = 0) -> Caller:
        """The process as the engine wants to know it."""
        ...

    def held(self) -> list[tuple[str, int]]:
        """The (step, token) pairs that it runs."""
        ...

    async def offer(self, ask: Callable[[int], Awaitable[Answer]]) -> Answer:
        """Call `ask(free slots)` and start the claims of its answer."""
        ...


class RoundSkipped(Exception):
    """The breaker is open, for so many seconds."""


class Upkeep:
    """Promotes retries when they are due, and sweeps when it is this process's turn: one process does every
    `sweep_seconds`, whatever their number.

    `on_advanced` sees what the changes answered (tasks that ended), `on_turn` the answers to whose turn it is.
    """

    def __init__(
        self,
        engine: Engine,
        sweeper: Sweeper,
        hands: Hands,
        clock: Clock,
        random: Random,
        *,
        breaker: Guard,
        on_advanced: Callable[[AdvanceResult], None],
        on_turn: Callable[[Answer], None] = lambda _: None,
        sweep_seconds: float = 5.0,
        poll_seconds: float = 1.0,
    ) -> None:
        self._engine, self._sweeper, self._hands = engine, sweeper, hands
        self._clock, self._random, self._on_advanced = clock, random, on_advanced
        self._breaker = breaker
        self._unreachable = False
        self._turns = Turns(engine, "sweep", clock, random, sweep_seconds, on_turn)
        self._poll_seconds = poll_seconds
        self._due_at: float = clock.monotonic()
        self._hesitation = HESITATION_SECONDS
        self._sweep_at: float = clock.monotonic()
        self._changed = asyncio.Event()
        self._sleepers: set[str] = set()
        self._suspect = False
        self._unknown: set[tuple[str, int]] = set()
        self.repaired: Counter[str] = Counter()
        """Repairs by kind since the start."""
        self.skipped = 0
        """Rounds that the open breaker refused."""

    @property
    def due_at(self) -> float:
        """When retries are looked for next, by the clock's monotonic time in seconds."""
        return self._due_at

    def due_in(self, milliseconds: float) -> None:
        """Something will be due then: a retry that this process arranged."""
        self._due_at = min(self._due_at, self._clock.monotonic() + milliseconds / 1000)
        self._changed.set()

    def wake(self, namespaces: set[str]) -> None:
        """Hints for these namespaces were committed just now: wake workers that sleep."""
        self._sleepers |= namespaces
        self._changed.set()

    def suspect(self) -> None:
        """An answer of the database was lost: there may be claims that nobody here knows of (rule 4)."""
        self._suspect = True
        self._changed.set()

    async def run(self) -> None:
        """Work until cancelled."""
        while True:
            self._changed.clear()
            try:
                await self._turn()
            except (DatabaseError, MessagingError):
                await asyncio.sleep(0.2 + 0.3 * self._random.random())
            pause = min(self._due_at, self._sweep_at) - self._clock.monotonic()
            if not self._sleepers and pause > 0:
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(pause):
                        await self._changed.wait()

    async def _turn(self) -> None:
        await self._wake_sleepers()
        now = self._clock.monotonic()
        if now >= min(self._due_at, self._sweep_at):
            try:
                await self._breaker.call(lambda: self._round(now), RoundSkipped, self._is_outage)
            except RoundSkipped as skipped:
                await self._skip(now, skipped.args[0])

    async def _wake_sleepers(self) -> None:
        namespaces, self._sleepers = self._sleepers, set()
        if namespaces:
            try:
                await self._engine.connection.execute("select tasker.wake_v1(%s)", (sorted(namespaces),))
            except DatabaseError:
                self._sleepers |= namespaces
                raise

    async def _skip(self, now: float, seconds: float) -> None:
        """Come back when the breaker does; sooner when the database could not be reached, and answers again."""
        self.skipped += 1
        self._due_at = self._sweep_at = now + seconds
        if self._unreachable:
            self._due_at = now + min(seconds, self._jittered(self._poll_seconds))
            await self._engine.connection.execute("select 1")
            self._unreachable = False
            self._breaker.encouraged()
            self._due_at = self._sweep_at = now

    def _is_outage(self, error: Exception) -> bool:
        self._unreachable = isinstance(error, DatabaseUnavailable)
        return isinstance(error, DatabaseError)

    async def _round(self, now: float) -> None:
        if now >= self._due_at:
            await self.promote()
            if self._suspect:
                await self._reconcile()
        if now >= self._sweep_at:
            self._sweep_at = now + self._jittered(self._poll_seconds)  # should asking fail
            mine, pause = await self._turns.take()
            self._sweep_at = now + pause
            if mine:
                await self.sweep()

    async def promote(self) -> int:
        """Enqueue what is due, or start it here; how many steps."""
        self._due_at = self._clock.monotonic() + self._jittered(self._poll_seconds)
        answer = await self._hands.offer(self._promote)
        promoted = int(answer.get("promoted") or 0)
        self._look_again(answer, progress=promoted > 0)
        self._advanced(answer)
        return promoted

    def _look_again(self, answer: Answer, progress: bool) -> None:
        """When the next retry is due. What is due and could not be had is asked for less and less often."""
        pause = HESITATION_SECONDS if progress else self._hesitation
        self._hesitation = HESITATION_SECONDS if progress else min(2 * pause, self._poll_seconds)
        due = answer.get("next_due_ms")
        if answer.get("passed_over") or (due == 0 and not progress):
            self.due_in(pause * 1000)
        if due is not None and (due > 0 or progress):
            self.due_in(max(1.0, due))

    async def _promote(self, slots: int) -> Answer:
        return await self._engine.call("due", f"{self._hands.caller(slots).fields()}}}")

    async def sweep(self) -> Counter[str]:
        """One sweep; the repairs by kind."""
        repairs, advanced = await self._sweeper.sweep(self._hands.caller(), self._between_slices)
        self.repaired += repairs
        self._on_advanced(advanced)
        if +repairs:
            self._due_at = self._clock.monotonic()
        return repairs

    async def _between_slices(self) -> None:
        """A sweep over many open tasks takes its time: nobody waits meanwhile to be woken or promoted."""
        await self._turns.keep()
        await self._wake_sleepers()
        if self._clock.monotonic() >= self._due_at:
            await self.promote()

    async def _reconcile(self) -> None:
        """Release claims that this process does not hold. Only those seen twice: an answer may be on its way."""
        caller = self._hands.caller()
        found = await self._engine.read("reconcile", {"worker": caller.worker, "held": self._hands.held()})
        unknown = {(row["s"], row["k"]): row["t"] for row in found["items"]}
        twice = [
            simple_change("release", step, unknown[step, token], token) for step, token in self._unknown & {*unknown}
        ]
        if twice:
            self._on_advanced(await self._sweeper.apply(twice, caller))
        self._unknown = {*unknown}
        self._suspect = bool(unknown)

    def _advanced(self, answer: Answer) -> None:
        advanced = AdvanceResult()
        advanced.add(answer)
        self._on_advanced(advanced)

    def _jittered(self, seconds: float) -> float:
        return seconds * (0.75 + 0.5 * self._random.random())
