"""Periodic loop of every process: promotes what is due, sweeps, starts steps here.

A round goes through the breaker `task_readiness`: while it is open the round is skipped, and everything else continues.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from tasker.clock import BackoffPolicy, Clock, Random, between, jittered
from tasker.dataclasses import dataclass
from tasker.engine.answers import DueAnswer
from tasker.engine.calls import Engine
from tasker.engine.exchange import CompletingWorker, OnAdvanced
from tasker.errors import DatabaseError, DatabaseUnavailable, MessagingError
from tasker.orchestration.changes import simple_change
from tasker.orchestration.dead_letters import StalenessSearch
from tasker.orchestration.pending_work import ExclusiveTurns, PendingWork
from tasker.orchestration.sweep import Sweeper
from tasker.plugins.hook_arguments import SweepRepaired
from tasker.resilience.breaker import GuardedCircuit
from tasker.resilience.outage import Failing

if TYPE_CHECKING:
    from tasker.services.child_tasks import ChildTasks
    from tasker.services.event_matching import EventMatcher
    from tasker.services.schedule_firing import ScheduleFiring


class StepExecutor(Protocol):
    """Executor of the steps of a process."""

    def caller(self, slots: int = 0) -> CompletingWorker:
        """Return the process as an argument of the engine's calls."""
        ...

    def claim_tokens(self) -> list[tuple[str, int]]:
        """Return the (step, token) pairs in flight."""
        ...

    async def offer(self, ask: Callable[[int], Awaitable[DueAnswer]]) -> DueAnswer:
        """Call `ask(free slots)` and start the claims of its answer."""
        ...


class NoStepExecutor:
    """Executor of a process that runs no steps: it has no slots and no claims."""

    def __init__(self, caller: CompletingWorker) -> None:
        self._caller = caller

    def caller(self, slots: int = 0) -> CompletingWorker:
        """Return this process, without a slot."""
        return self._caller

    def claim_tokens(self) -> list[tuple[str, int]]:
        """Return an empty list."""
        return []

    async def offer(self, ask: Callable[[int], Awaitable[DueAnswer]]) -> DueAnswer:
        """Call `ask` with zero slots."""
        return await ask(0)


DUE_SLICE = 100
"""Number of due steps that one call promotes."""
BUSY_SECONDS = 0.05
"""Pause after which steps with child tasks are looked at again that another transaction has locked."""
HESITATION_SECONDS = 0.02
"""First pause when due retries are locked; it doubles until there is progress."""
RECONCILED_STEPS = 5_000
"""Steps of tasks under way that one statement compares with the claims of this process."""
TURN_SECONDS = 4.0
"""Time for which the timekeeper is trusted without a sign of life; it gives one with every look."""
LATE_SECONDS = 0.25
"""Delay after which a due step is promoted by any process that looks, not only by the timekeeper."""
OTHERS_SECONDS = 5.0
"""Pause between looks of the processes that do not keep the time."""
SPREAD = 0.25
"""Jitter of pauses between processes, as a share of the pause."""
FIRST_SECONDS = 0.25
"""Delay of retries and sweeps after the start: a process begins with its work, and many end before."""
FAILED_SECONDS = (0.2, 0.5)
"""Bounds of the pause after a failed round."""
DRAIN_SECONDS = 3.0
"""Time that a stop waits for the round under way."""
_log = logging.getLogger("tasker.orchestration")


class UpkeepSkipped(Exception):
    """Raised with the seconds for which the breaker is open."""


@dataclass(frozen=True, slots=True)
class UpkeepMakers:
    """Constructors of what few processes need: what fires schedules, gives events to waits, starts child tasks."""

    firing: Callable[[], ScheduleFiring] | None = None
    matching: Callable[[], EventMatcher] | None = None
    children: Callable[[], ChildTasks] | None = None


NO_MAKERS = UpkeepMakers()


class Upkeep:
    """Service that promotes due retries, wakes workers, and sweeps when it is this process's turn.

    `executor` runs the promoted steps, if it can; `on_advanced` gets the answers to changes (tasks that ended),
    `on_repaired` the repairs of a sweep.
    """

    _keeps_time = True
    """Whether this process is the timekeeper; it looks as often until another one is known to be."""
    firing: ScheduleFiring | None = None
    """Firing of schedules, made when the first one is due."""
    _draining = False
    repaired: Counter[str]
    """Repairs by kind since the start."""
    _matcher: EventMatcher | None = None
    """Matcher of events, made when there is the first one."""
    _children: ChildTasks | None = None
    """Start and count of child tasks, made when there is the first one."""
    skipped: int
    """Number of rounds skipped by the open breaker."""
    skipped = 0
    """Number of rounds skipped by the open breaker."""

    def __init__(
        self,
        engine: Engine,
        sweeper: Sweeper,
        turns: ExclusiveTurns,
        executor: StepExecutor,
        schedule: PendingWork,
        clock: Clock,
        random: Random,
        *,
        breaker: GuardedCircuit,
        on_advanced: OnAdvanced,
        on_repaired: Callable[[SweepRepaired], None] | None = None,
        poll_seconds: float = 1.0,
        makers: UpkeepMakers = NO_MAKERS,
    ) -> None:
        self._engine, self._sweeper, self._turns, self._executor = engine, sweeper, turns, executor
        self._schedule, self._clock, self._random, self._breaker = schedule, clock, random, breaker
        self._on_advanced, self._on_repaired = on_advanced, on_repaired
        self._poll_seconds, self._makers = poll_seconds, makers
        self._failing, self._unreachable, self._sweep_at = Failing("upkeep", _log), False, clock.monotonic()
        self._hesitations, self._hesitation = BackoffPolicy(HESITATION_SECONDS, poll_seconds), HESITATION_SECONDS
        self._unknown, self._under_way, self.repaired = set[tuple[str, int]](), asyncio.Lock(), Counter[str]()

    @property
    def staleness(self) -> StalenessSearch:
        """Return the search for stale tasks that is part of each sweep, with its counters."""
        return self._sweeper.staleness

    async def run(self) -> None:
        """Work until cancelled."""
        self._sweep_at = self._clock.monotonic() + FIRST_SECONDS
        self._schedule.check_at(self._sweep_at)
        while True:
            self._schedule.read()
            try:
                await self._turn()
                self._failing.succeeded()
            except (DatabaseError, MessagingError) as error:
                self._failing.failed(error)
                await asyncio.sleep(between(*FAILED_SECONDS, self._random.random()))
            await self._schedule.wait(min(self._schedule.due_at, self._sweep_at) - self._clock.monotonic())

    async def drain(self) -> None:
        """Begin no more rounds; return when the one under way has ended, or after `DRAIN_SECONDS`.

        Sleeping workers are still woken until `run` is cancelled.
        """
        self._draining = True
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS), self._under_way:
                pass

    async def _turn(self) -> None:
        await self.wake_sleepers()
        now = self._clock.monotonic()
        if self._draining:
            self._sweep_at = now + self._poll_seconds
            self._schedule.check_at(self._sweep_at)
        elif now >= min(self._schedule.due_at, self._sweep_at):
            async with self._under_way:
                await self._guarded_round(now)

    async def _guarded_round(self, now: float) -> None:
        try:
            await self._breaker.call(lambda: self._round(now), UpkeepSkipped, self._is_outage)
        except UpkeepSkipped as skipped:
            await self._skip(now, skipped.args[0])

    async def wake_sleepers(self) -> None:
        """Wake the sleeping workers for which there is work now. Raises `DatabaseError`; they are woken later."""
        if namespaces := self._schedule.take_sleepers():
            try:
                await self._engine.connection.execute("select tasker.wake_v1(%s)", (namespaces,))
            except DatabaseError:
                self._schedule.wake(set(namespaces))
                raise
        if steps := self._schedule.take_steps():
            try:
                await self._engine.connection.execute("select tasker.wake_steps_v1(%s::uuid[])", (steps,))
            except DatabaseError:
                self._schedule.wake_later(dict.fromkeys(steps, 0.0))
                raise

    async def _skip(self, now: float, seconds: float) -> None:
        """Retry after the breaker's time; sooner once a database that could not be reached answers again."""
        self.skipped += 1
        self._sweep_at = now + seconds
        self._schedule.check_at(self._sweep_at)
        if self._unreachable:
            self._schedule.check_at(now + min(seconds, self._jittered(self._poll_seconds)))
            await self._engine.connection.execute("select 1")
            self._unreachable = False
            self._breaker.encouraged()
            self._sweep_at = now
            self._schedule.check_at(now)

    def _is_outage(self, error: Exception) -> bool:
        self._unreachable = isinstance(error, DatabaseUnavailable)
        return isinstance(error, DatabaseError)

    async def _round(self, now: float) -> None:
        if now >= self._schedule.due_at:
            await self.promote()
            if self._schedule.suspected:
                await self._reconcile()
        if now >= self._sweep_at:
            self._sweep_at = now + self._jittered(self._poll_seconds)  # in case taking the turn fails
            mine, pause = await self._turns.take()
            self._sweep_at = now + pause
            if mine:
                await self.sweep()

    async def promote(self) -> int:
        """Enqueue due steps or start them here; return how many."""
        own = self._schedule.is_own_due
        turn = {"turn_ms": TURN_SECONDS * 1000, "late_ms": 0 if own else LATE_SECONDS * 1000}
        pause = self._poll_seconds if self._keeps_time or self._schedule.suspected else OTHERS_SECONDS
        self._schedule.check_at(self._clock.monotonic() + self._jittered(pause))
        asked = 0

        async def ask(slots: int) -> DueAnswer:
            nonlocal asked
            asked = slots
            return await self._engine.call_typed(
                "due", {**self._executor.caller(slots).args(), **turn, "limit": DUE_SLICE}, DueAnswer
            )

        try:
            answer = await self._executor.offer(ask)
        except (DatabaseError, MessagingError):
            if asked:  # no worker runs claims whose answer was lost
                self._schedule.suspect()
            raise
        self._schedule_promotion(answer, progress=answer.promoted > 0, own=own)
        self._on_advanced(answer)
        if answer.unplanned:
            await self._sweeper.apply(answer.unplanned, self._executor.caller())
        if answer.schedules:
            await self._fire(answer.schedules)
        if answer.unmatched:
            await self._match()
        if answer.children:
            await self._advance_children()
        return answer.promoted

    async def _match(self) -> None:
        """Give events to the steps that wait for them."""
        if self._matcher is None and self._makers.matching is not None:
            self._matcher = self._makers.matching()
        if self._matcher is not None and await self._matcher.match():
            self._schedule.recheck_in(1.0)  # there may be more

    async def _advance_children(self) -> None:
        """Start child tasks, and count those that ended."""
        if self._children is None and self._makers.children is not None:
            self._children = self._makers.children()
        if self._children is not None:
            caller = self._executor.caller()
            work = await self._children.look(caller)
            if work.failures:
                await self._sweeper.apply(work.failures, caller)
            if work.more or work.busy:
                self._schedule.recheck_in(1.0 if work.more else BUSY_SECONDS * 1000)

    async def _fire(self, schedules: Sequence[str]) -> None:
        """Fire the schedules that are due; the timekeeper checks again when the first of them is due next."""
        if self.firing is None:
            if self._makers.firing is None:
                return
            self.firing = self._makers.firing()
        due_ms = await self.firing.fire_all(schedules)
        if due_ms is not None and self._keeps_time:
            self._schedule.recheck_in(max(1.0, due_ms))

    def on_notification(self, payload: str) -> None:
        """Receive a notification of `TIMERS_CHANNEL`: a step is due in so many milliseconds; empty: no process is
        the timekeeper."""
        if not payload:
            self._schedule.recheck_in(self._random.random() * LATE_SECONDS * 1000)
        elif self._keeps_time and payload.isdecimal():
            self._schedule.recheck_in(int(payload))

    def _schedule_promotion(self, answer: DueAnswer, progress: bool, own: bool) -> None:
        """Schedule the next promotion. Due steps that were locked are retried less and less often."""
        if answer.keeper and not self._keeps_time:
            self._schedule.recheck_in(self._jittered(self._poll_seconds) * 1000)
        self._keeps_time = answer.keeper
        look_in = self._schedule.due_in if own or answer.keeper else self._schedule.recheck_in
        pause = HESITATION_SECONDS if progress else self._hesitation
        self._hesitation = HESITATION_SECONDS if progress else self._hesitations.after(pause)
        due = answer.next_due_ms
        if answer.passed_over or (due == 0 and not progress):
            look_in(pause * 1000)
        if due is not None and (due > 0 or progress):
            look_in(max(1.0, due))

    async def sweep(self) -> Counter[str]:
        """Sweep once; return the repairs by kind."""
        repairs = await self._sweeper.sweep(self._executor.caller(), self._between_slices)
        self.repaired += repairs
        if +repairs:
            self._schedule.check_at(self._clock.monotonic())
            if self._on_repaired is not None:
                self._on_repaired(SweepRepaired(tuple((+repairs).items())))
        return repairs

    async def _between_slices(self) -> None:
        """Wake workers and promote retries between the slices of a long sweep."""
        await self._turns.extend()
        await self.wake_sleepers()
        if self._clock.monotonic() >= self._schedule.due_at:
            await self.promote()

    async def _reconcile(self) -> None:
        """Release claims that this process does not know, if seen twice: an answer may be on its way."""
        caller = self._executor.caller()
        unknown: dict[tuple[str, int], str] = {}
        last: str | None = None
        while True:
            held = {"worker": caller.worker, "held": self._executor.claim_tokens()}
            answer = await self._engine.read("reconcile", {**held, "after": last, "steps": RECONCILED_STEPS})
            unknown |= {(row["s"], row["k"]): row["t"] for row in answer["items"]}
            if (last := answer.get("last")) is None:
                break
        twice = [
            simple_change("release", step, unknown[step, token], token) for step, token in self._unknown & {*unknown}
        ]
        if twice:
            await self._sweeper.apply(twice, caller)
        self._unknown = {*unknown}
        self._schedule.compared(again=bool(unknown))

    def _jittered(self, seconds: float) -> float:
        return jittered(seconds, SPREAD, self._random.random())
