"""When a process promotes and sweeps, and which claims it takes for lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from tasker.engine.answers import DueAnswer
from tasker.engine.changes import StepChange
from tasker.engine.exchange import CompletingWorker
from tasker.orchestration.pending_work import ExclusiveTurns, PendingWork
from tasker.orchestration.upkeep import Upkeep
from tasker.plugins.hook_arguments import SweepRepaired
from tasker.resilience.breakers import Breakers
from tests.unit.execution.bench import FakeClock

LOST = {"s": "00000000-0000-7000-8000-000000000001", "k": 7, "t": "00000000-0000-7000-8000-000000000002"}


class Chance:
    def __init__(self, value: float) -> None:
        self.value = value

    def random(self) -> float:
        return self.value


class Process:
    """A process on a database that shows it the claims of `unknown`; each sweep repairs what `repairs` says."""

    def __init__(self, chance: float = 0.5) -> None:
        self.clock, self.unknown, self.repairs = FakeClock(), list[dict[str, Any]](), Counter[str]()
        self.released: list[StepChange] = []
        self.rounds, self.told = 0, list[SweepRepaired]()
        here: Any = self
        self.schedule, luck = PendingWork(self.clock), Chance(chance)
        self.upkeep = Upkeep(
            here,
            here,
            ExclusiveTurns(here, "sweep", self.clock, luck, 5),
            here,
            self.schedule,
            self.clock,
            luck,
            breaker=Breakers(self.clock).task_readiness,
            on_advanced=lambda _: None,
            on_repaired=self.told.append,
            poll_seconds=2,
        )

    @property
    def messaging(self) -> Process:
        return self

    def provider_name(self) -> str:
        return "none"

    def caller(self, slots: int = 0) -> CompletingWorker:
        return CompletingWorker("worker", slots)

    def claim_tokens(self) -> list[tuple[str, int]]:
        return []

    async def offer(self, ask: Callable[[int], Awaitable[DueAnswer]]) -> DueAnswer:
        self.rounds += 1
        return DueAnswer()

    async def read(self, function: str, args: object) -> dict[str, Any]:
        return {"items": self.unknown, "mine": True, "since_ms": 0}

    async def sweep(self, caller: object, between: object) -> Counter[str]:
        return self.repairs

    async def apply(self, changes: Sequence[StepChange], caller: object) -> None:
        self.released += changes

    async def round(self) -> None:
        """The next round in which retries are due."""
        self.clock.seconds = max(self.clock.seconds, self.schedule.due_at)
        await self.upkeep._turn()

    @property
    def due_in(self) -> float:
        return self.schedule.due_at - self.clock.monotonic()


async def test_a_claim_that_is_unknown_twice_in_a_row_is_released() -> None:
    process = Process()
    process.unknown = [LOST]
    process.schedule.suspect()
    await process.round()
    assert process.released == [], "its answer may be on its way"
    await process.round()

    assert [(change["s"], change["kind"]) for change in process.released] == [(LOST["s"], "release")]


async def test_a_claim_whose_answer_came_meanwhile_is_kept() -> None:
    process = Process()
    process.unknown = [LOST]
    process.schedule.suspect()
    await process.round()
    process.unknown = []
    await process.round()
    await process.round()

    assert process.released == []


async def test_another_claim_of_the_same_step_is_not_the_one_that_was_seen_before() -> None:
    process = Process()
    process.unknown = [LOST]
    process.schedule.suspect()
    await process.round()
    process.unknown = [{**LOST, "k": 8}]
    await process.round()

    assert process.released == []


async def test_a_retry_is_due_in_milliseconds_and_the_soonest_counts() -> None:
    process = Process()
    await process.round()
    process.schedule.due_in(1500)
    assert process.due_in == pytest.approx(1.5)
    process.schedule.due_in(1900)
    assert process.due_in == pytest.approx(1.5)
    process.schedule.due_in(20)
    assert process.due_in == pytest.approx(0.02)


async def test_processes_look_for_due_retries_at_different_times() -> None:
    early, late = Process(0.0), Process(0.99)
    for process in (early, late):
        await process.upkeep.promote()

    assert early.due_in == pytest.approx(1.5)
    assert late.due_in == pytest.approx(2.49)


async def test_what_a_sweep_has_repaired_is_promoted_at_once() -> None:
    process = Process()
    await process.upkeep.promote()
    await process.upkeep.sweep()
    assert process.due_in > 1
    process.repairs = Counter(unpromoted=1)
    await process.upkeep.sweep()

    assert process.due_in == 0


async def test_plugins_hear_of_sweeps_that_repaired_something_and_of_no_other() -> None:
    process = Process()
    for repairs in (Counter(hint_lost=0), Counter(hint_lost=2, lost_worker=0), Counter[str]()):
        process.repairs = repairs
        await process.upkeep.sweep()
    assert process.told == [SweepRepaired((("hint_lost", 2),))]
