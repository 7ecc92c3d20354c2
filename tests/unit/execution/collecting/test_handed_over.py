"""Steps that a write hands over start beside the next write: none is lost, and none holds up what is to be written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import Any

import pytest

from tasker.clock import SystemClock
from tasker.engine.exchange import AdvanceResult, ClaimRow, CompletingWorker, Result
from tasker.engine.plans import PlanStore
from tasker.errors import DatabaseUnavailable
from tasker.execution.completer import Completer, CompletionBuffer
from tasker.execution.report_buffer import ReportBuffer
from tasker.execution.settings import WorkerSettings
from tasker.execution.slots import Slots
from tasker.execution.worker import MOST_TOGETHER, Worker
from tasker.handlers.claims import Claim, Success
from tasker.json_values import JsonText
from tasker.resilience.breakers import Breakers
from tests.unit.execution.bench import PATIENCE

NOTHING: Any = None
CONCURRENCY = 4 * MOST_TOGETHER


class Rig:
    """A collector whose first write ends a parent and hands `children` over; what happens is told in `events`."""

    def __init__(self, children: int) -> None:
        self.children = children
        self.events: list[str] = []
        self.during_first: Sequence[str] = ()
        """What ends while the first write is under way."""
        self.opened = asyncio.Event()
        """Children are started once it is set."""
        self.opened.set()
        self.refused: list[Exception] = []
        """What goes wrong when children are started."""
        self.lost = 0
        self.slots = Slots(CONCURRENCY)
        self.buffer = CompletionBuffer(self.slots)
        breakers = Breakers(SystemClock())
        self.worker = Worker(
            "worker",
            self.slots,
            self.buffer,
            engine=NOTHING,
            plans=PlanStore(NOTHING),
            runner=NOTHING,
            settings=WorkerSettings(),
            events=NOTHING,
            reports=ReportBuffer(None, 1),
        )
        self.worker.accept = self._accept  # type: ignore[method-assign]
        self.collector = Completer(
            self.buffer,
            self.worker,
            self,
            NOTHING,
            breakers.completion,
            on_advanced=lambda _: None,
            on_lost=self._on_lost,
            bus=NOTHING,
        )

    def _on_lost(self) -> None:
        self.lost += 1

    async def process(self, results: Sequence[Result], caller: CompletingWorker, *, wait: bool = True) -> AdvanceResult:
        steps = [result.claim.step_uuid for result in results]
        self.events.append(f"write {' '.join(steps)}")
        await asyncio.sleep(0)  # the answer of a database takes longer than a turn
        await asyncio.sleep(0)
        if steps != ["parent"]:
            return AdvanceResult()
        self.end(*self.during_first)
        rows = [
            ClaimRow(f"child {n}", "t", "s", template=1, ordinal=0, token=1, attempt=1) for n in range(self.children)
        ]
        return AdvanceResult(rows)

    async def _accept(self, answer: AdvanceResult) -> None:
        try:
            await self.opened.wait()
            if self.refused:
                raise self.refused.pop()
            self.events.append("start children")
        finally:
            self.slots.finish(len(answer.claims))  # they have run and ended, or will never run

    def end(self, *steps: str) -> None:
        for step in steps:
            claim = Claim(step, "t", step, 1, 0, "space", 1, 1, 3, "correlation")
            self.buffer.add(Result(claim, NOTHING, 0, Success(JsonText("null"))))


@pytest.fixture
async def start() -> AsyncIterator[Callable[[Rig], asyncio.Task[None]]]:
    running: list[asyncio.Task[None]] = []

    def begin(rig: Rig) -> asyncio.Task[None]:
        running.append(asyncio.create_task(rig.collector.run()))
        return running[-1]

    yield begin
    for task in running:
        task.cancel()
        with suppress(asyncio.CancelledError, RuntimeError):
            await task


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0)


Start = Callable[[Rig], asyncio.Task[None]]


async def test_a_write_that_is_due_goes_out_before_what_the_last_one_handed_over_is_started(start: Start) -> None:
    rig = Rig(children=1)
    rig.during_first = [f"{n}" for n in range(MOST_TOGETHER // 2)]
    start(rig)
    rig.end("parent")
    await until(lambda: len(rig.events) == 3)

    assert rig.events == ["write parent", f"write {' '.join(rig.during_first)}", "start children"]
    await until(lambda: rig.slots.idle)


async def test_few_results_wait_for_those_of_the_children_that_are_started_now(start: Start) -> None:
    rig = Rig(children=1)
    rig.during_first = [f"{n}" for n in range(MOST_TOGETHER // 2 - 1)]
    start(rig)
    rig.end("parent")
    await until(lambda: len(rig.events) == 3)

    assert rig.events == ["write parent", "start children", f"write {' '.join(rig.during_first)}"]


async def test_few_children_start_at_once_where_nothing_waits_to_be_written(start: Start) -> None:
    rig = Rig(children=MOST_TOGETHER)
    rig.opened.clear()
    start(rig)
    rig.end("parent")
    await until(lambda: rig.slots.running == MOST_TOGETHER)
    rig.end("later")
    for _ in range(10):
        await asyncio.sleep(0)
    assert rig.events == ["write parent"], "the collector starts them itself, which costs no task"
    rig.opened.set()
    await until(lambda: rig.events == ["write parent", "start children", "write later"])


async def test_what_ends_while_many_children_are_started_is_written_meanwhile(start: Start) -> None:
    rig = Rig(children=MOST_TOGETHER + 1)
    rig.opened.clear()
    start(rig)
    rig.end("parent")
    await until(lambda: rig.slots.running == MOST_TOGETHER + 1)
    rig.end("first child")
    await until(lambda: rig.events == ["write parent", "write first child"])
    rig.opened.set()
    await until(lambda: rig.slots.idle)


async def test_an_outage_in_which_children_cannot_be_started_is_told_and_leaves_no_slot_taken(start: Start) -> None:
    rig = Rig(children=MOST_TOGETHER + 1)
    rig.refused = [DatabaseUnavailable("gone")]
    start(rig)
    rig.end("parent")
    await until(lambda: rig.lost == 1)

    rig.end("other")
    await until(lambda: "write other" in rig.events and rig.slots.free == CONCURRENCY)


async def test_a_defect_in_starting_children_ends_the_collector_which_may_begin_again(start: Start) -> None:
    rig = Rig(children=MOST_TOGETHER + 1)
    rig.refused = [RuntimeError("a defect")]
    first = start(rig)
    rig.end("parent")
    with pytest.raises(RuntimeError, match="a defect"):
        await asyncio.wait_for(first, PATIENCE)

    start(rig)
    rig.end("other")
    await until(lambda: "write other" in rig.events and rig.slots.free == CONCURRENCY)


@pytest.mark.parametrize("turns", range(4))
async def test_a_collector_that_ends_starts_nothing_more_and_says_that_claims_are_nobodys(
    start: Start, turns: int
) -> None:
    rig = Rig(children=MOST_TOGETHER + 1)
    rig.opened.clear()
    running = start(rig)
    rig.end("parent")
    await until(lambda: rig.slots.running > 0)
    for _ in range(turns):
        await asyncio.sleep(0)
    running.cancel()
    with suppress(asyncio.CancelledError):
        await running

    assert rig.lost == 1
    assert rig.slots.idle
    rig.opened.set()
    for _ in range(5):
        await asyncio.sleep(0)
    assert "start children" not in rig.events


def test_slots_are_promised_to_results_until_their_write_begins_and_again_when_it_fails() -> None:
    rig = Rig(children=0)
    rig.end("one", "two", "three")
    assert rig.slots.reserved_for_results == 3
    with suppress(DatabaseUnavailable), rig.buffer.write(2):
        assert rig.slots.reserved_for_results == 1
        rig.end("four")
        assert rig.slots.reserved_for_results == 2
        raise DatabaseUnavailable("gone")
    assert rig.slots.reserved_for_results == 4
