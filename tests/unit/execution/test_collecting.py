"""Results on their way to a store that is away, slow or stuck: all of them arrive, and meanwhile nothing is claimed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from tasker.clock import SystemClock
from tasker.engine.exchange import AdvanceResult, CompletingWorker, Result
from tasker.engine.plans import PlanStore
from tasker.errors import DatabaseUnavailable
from tasker.execution import completer
from tasker.execution.completer import Completer, CompletionBuffer
from tasker.execution.report_buffer import ReportBuffer
from tasker.execution.settings import WorkerSettings
from tasker.execution.slots import Slots
from tasker.execution.worker import Worker
from tasker.handlers.claims import Success
from tasker.json_values import JsonText
from tasker.resilience.breaker import BreakerState
from tasker.resilience.breakers import BreakerPolicies, Breakers
from tasker.settings.queues import HandlerDispatch
from tasker.template.plan import BreakerPolicy
from tests.unit.execution.bench import PATIENCE


class Store:
    """Where results go. It raises `error`, if any; `opened` lets writes pass; `offered` are the slots seen."""

    def __init__(self) -> None:
        self.stored: list[str] = []
        self.offered: list[int] = []
        self.writes: list[int] = []
        self.error: Exception | None = None
        self.opened = asyncio.Event()
        self.opened.set()

    async def process(self, results: Sequence[Result], caller: CompletingWorker, *, wait: bool = True) -> AdvanceResult:
        await self.opened.wait()
        if self.error:
            raise self.error
        self.stored += [result.claim.step_uuid for result in results]
        self.offered.append(caller.slots)
        self.writes.append(len(results))
        return AdvanceResult()


class Rig:
    """A collector with its worker. The breaker opens after two failures, for a moment; one success closes it."""

    def __init__(self, slow_ms: int = 10_000) -> None:
        policy = BreakerPolicy(failure_threshold=2, timeout_seconds=0.05, success_threshold=1)
        breakers = Breakers(
            SystemClock(), BreakerPolicies(completion=policy, slow_completion_ms=slow_ms, settle_seconds=0)
        )
        self.breaker = breakers.completion.guard
        self.store = Store()
        nothing: Any = None
        slots = Slots(10)
        self.buffer = CompletionBuffer(slots, HandlerDispatch(completion_buffer_size=3))
        self.worker = Worker(
            "worker",
            slots,
            self.buffer,
            engine=nothing,
            plans=PlanStore(nothing),
            runner=nothing,
            settings=WorkerSettings(),
            events=nothing,
            reports=ReportBuffer(None, 1),
        )
        self.collector = Completer(
            self.buffer,
            self.worker,
            self.store,
            self._release,
            breakers.completion,
            on_advanced=lambda _: None,
            on_lost=lambda: None,
            bus=nothing,
        )
        breakers.completion.guard.listeners.append(self.collector.apply_breaker)
        breakers.completion.guard.notes.append(self.buffer.describe)

    async def _release(self, given_back: object) -> None:
        raise AssertionError("nothing is given back here")

    def end(self, *steps: str) -> None:
        """These steps have ended; their slots are free."""
        for step in steps:
            claim: Any = SimpleNamespace(step_uuid=step, token=1)
            self.buffer.add(Result(claim, claim, 0, Success(JsonText("null"))))

    @property
    def free(self) -> int:
        return self.worker.slots.free


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0.001)


@pytest.fixture
async def rigs() -> AsyncIterator[Callable[..., Rig]]:
    running: list[asyncio.Task[None]] = []

    def make(**options: Any) -> Rig:
        rig = Rig(**options)
        running.append(asyncio.create_task(rig.collector.run()))
        return rig

    yield make
    for task in running:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def test_a_full_buffer_claims_nothing_loses_nothing_and_is_over_when_it_has_emptied(
    rigs: Callable[..., Rig], caplog: pytest.LogCaptureFixture
) -> None:
    rig = rigs()
    rig.store.opened.clear()
    rig.end("a", "b")
    assert rig.free == 10
    await until(lambda: rig.free == 0)  # the write under way has set them aside for what it hands over
    rig.end("c", "d", "e")
    assert rig.worker.slots.holds == {"completion_buffer": 1}
    rig.store.opened.set()
    await rig.buffer.flushed()

    assert rig.store.stored == ["a", "b", "c", "d", "e"]
    assert rig.free == 10
    assert "completion_buffer fill=full waiting=3 size=3" in caplog.text


async def test_results_outlive_an_outage_in_which_nothing_is_claimed(rigs: Callable[..., Rig]) -> None:
    rig = rigs()
    rig.store.error = DatabaseUnavailable("gone")
    rig.end("a")
    await until(lambda: rig.breaker.metrics().opened >= 3)
    held = rig.free
    rig.end("b")
    rig.store.error = None
    await rig.buffer.flushed()

    assert held <= 1, "none while it is open, a single one as a trial"
    assert sorted(rig.store.stored) == ["a", "b"]
    assert rig.breaker.state is BreakerState.CLOSED
    assert rig.free == 10


async def test_while_storing_is_slow_results_are_stored_all_the_same_and_one_step_at_a_time_is_tried(
    rigs: Callable[..., Rig],
) -> None:
    rig = rigs(slow_ms=0)
    for step in ("a", "b"):
        rig.end(step)
        await rig.buffer.flushed()
    assert rig.free == 0
    rig.end("c")
    await rig.buffer.flushed()
    assert rig.store.stored == ["a", "b", "c"]
    assert rig.store.offered[-1] == 0, "nothing is handed over either"

    await until(lambda: rig.free == 1)
    assert rig.breaker.state is BreakerState.HALF_OPEN


async def test_a_step_that_runs_for_long_does_not_keep_a_half_open_worker_from_trying(
    rigs: Callable[..., Rig],
) -> None:
    rig = rigs(slow_ms=0)
    rig.worker.slots.settle(rig.worker.slots.reserve(2), 2)
    for step in ("a", "b"):
        rig.end(step)
        await rig.buffer.flushed()
    assert rig.free == 0

    await until(lambda: rig.breaker.state is BreakerState.HALF_OPEN and rig.free > 0)
    assert rig.free == 1


async def test_the_health_says_how_full_the_buffer_is_and_why(rigs: Callable[..., Rig]) -> None:
    rig = rigs()
    rig.store.error = DatabaseUnavailable("cannot connect to database 'x' on db.internal")
    rig.end("a", "b", "c")
    await until(lambda: not rig.breaker.is_healthy())

    reading = rig.breaker.reading()
    assert (reading.error, reading.note) == (
        "cannot connect to database 'x' on db.internal",
        "buffer full: 3 of 3",
    )


async def test_a_collector_that_crashed_writes_what_was_left_as_soon_as_it_is_begun_again() -> None:
    rig = Rig()
    rig.store.error = RuntimeError("a defect")
    rig.end("one")
    with pytest.raises(RuntimeError, match="a defect"):
        await rig.collector.run()
    rig.store.error = None
    again = asyncio.create_task(rig.collector.run())
    await until(lambda: rig.store.stored == ["one"])
    again.cancel()
    with suppress(asyncio.CancelledError):
        await again


async def test_results_of_many_megabytes_go_in_several_writes(
    rigs: Callable[..., Rig], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = rigs()
    monkeypatch.setattr(completer, "BATCH_BYTES", 100)
    for number, size in enumerate((60, 40, 1, 500, 30)):
        claim: Any = SimpleNamespace(step_uuid=str(number), token=1)
        rig.buffer.add(Result(claim, claim, 0, Success(JsonText("x" * size))))
    await asyncio.wait_for(rig.buffer.flushed(), PATIENCE)
    assert rig.store.stored == ["0", "1", "2", "3", "4"]
    assert rig.store.writes == [2, 1, 1, 1]


async def test_between_two_writes_a_claim_has_its_turn(rigs: Callable[..., Rig]) -> None:
    """Each write sets aside every slot that is free: one after the other they would leave none for what is queued."""
    rig = rigs()
    slots = rig.worker.slots
    slots.settle(slots.reserve(8), 8)
    claimed: list[int] = []

    async def claim() -> None:
        await slots.wait_claimable()
        claimed.append(len(rig.store.writes))

    async def more_meanwhile(
        results: Sequence[Result], caller: CompletingWorker, *, wait: bool = True
    ) -> AdvanceResult:
        if not rig.store.writes:
            waiting.append(asyncio.create_task(claim()))
            await asyncio.sleep(0)
        if len(rig.store.writes) < 5:
            rig.end(f"more {len(rig.store.writes)}")
        return await Store.process(rig.store, results, caller, wait=wait)

    waiting: list[asyncio.Task[None]] = []
    rig.store.process = more_meanwhile  # type: ignore[method-assign]
    rig.end("first")
    await until(lambda: len(rig.store.writes) == 6)
    await until(lambda: bool(claimed))

    assert claimed == [1]
