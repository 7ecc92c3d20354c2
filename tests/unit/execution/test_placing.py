"""A step that has to wait for a thread or a child process starts with its whole time, or goes back unharmed."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tasker.engine.exchange import Result
from tasker.errors import DatabaseUnavailable
from tasker.execution.attempt.attempt import Attempt, ClaimLost, ClaimReleased, NoCapacity
from tasker.execution.attempt.capacity import LONGEST_WAIT_SECONDS, CapacityWaits
from tasker.step_handler import StepHandler
from tasker.types import StepContext, StepHandlerResult
from tests.unit.execution.bench import PATIENCE, Bench, make_bench
from tests.unit.execution.modes import child_handlers


class Blocks(StepHandler):
    """Holds its thread until the test lets it go."""

    def __init__(self) -> None:
        self.started, self.let_go = threading.Event(), threading.Event()

    def call(self, context: StepContext) -> StepHandlerResult:
        self.started.set()
        self.let_go.wait(PATIENCE)
        return self.success({})


class Quick(StepHandler):
    def call(self, context: StepContext) -> StepHandlerResult:
        return self.success({"called": True})


class Engine:
    """Where a waiting step says that its handler is called now; `answer` may be an error."""

    def __init__(self, answer: bool | Exception = True) -> None:
        self.answer, self.asked = answer, 0

    async def __call__(self) -> bool:
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.fixture
def blocks() -> Iterator[Blocks]:
    handler = Blocks()
    yield handler
    handler.let_go.set()


async def behind(bench: Bench, blocks: Blocks, **options: Any) -> tuple[Attempt, asyncio.Task[Any], asyncio.Task[Any]]:
    """An attempt that waits while another one has the only thread; what both come to."""
    first = asyncio.create_task(bench.end(bench.attempt(blocks, callable="blocks")))
    assert await asyncio.to_thread(blocks.started.wait, PATIENCE)
    waiting = bench.attempt(Quick, callable="quick", **options)
    second = asyncio.create_task(bench.end(waiting))
    async with asyncio.timeout(PATIENCE):
        while not bench.runner.waiting:
            await asyncio.sleep(0)
    return waiting, first, second


async def test_a_step_that_waits_longer_than_its_time_and_half_of_the_grace_goes_back(blocks: Blocks) -> None:
    bench, engine = make_bench(waits=CapacityWaits(grace=0.02)), Engine()
    _, first, second = await behind(bench, blocks, timeout_seconds=0.01, begin=engine)

    end = await second
    assert isinstance(end, NoCapacity)
    assert end.reason == "no thread of the worker was free for it in time"
    assert (engine.asked, bench.runner.waiting, bench.runner.is_saturated) == (0, 0, True)
    blocks.let_go.set()
    assert isinstance(await first, Result)
    assert not bench.runner.is_saturated


async def test_a_step_whose_wait_took_much_of_its_grace_has_its_time_counted_anew(blocks: Blocks) -> None:
    bench, engine = make_bench(waits=CapacityWaits(grace=0.0)), Engine()
    _, _, second = await behind(bench, blocks, begin=engine)
    blocks.let_go.set()

    assert isinstance(await second, Result)
    assert engine.asked == 1


async def test_a_short_wait_costs_no_write(blocks: Blocks) -> None:
    bench, engine = make_bench(waits=CapacityWaits(grace=600.0)), Engine()
    _, _, second = await behind(bench, blocks, begin=engine)
    blocks.let_go.set()

    assert isinstance(await second, Result)
    assert engine.asked == 0


@pytest.mark.parametrize(
    ("answer", "end", "reason"),
    [
        (False, ClaimLost, "it was taken away while it waited"),
        (DatabaseUnavailable("gone"), ClaimReleased, "the start of its handler could not be reported: gone"),
    ],
)
async def test_a_handler_is_not_called_unless_the_engine_knows_that_it_begins(
    blocks: Blocks, answer: Any, end: type, reason: str
) -> None:
    bench = make_bench(waits=CapacityWaits(grace=0.0))
    _, _, second = await behind(bench, blocks, begin=Engine(answer))
    blocks.let_go.set()

    ended = await second
    assert type(ended) is end
    assert ended.reason == reason
    assert isinstance(await bench.run(Quick, callable="again"), Result), "its place is free again"


async def test_an_attempt_that_is_cancelled_while_the_engine_is_told_gives_its_place_back(blocks: Blocks) -> None:
    bench, asked = make_bench(waits=CapacityWaits(grace=0.0)), asyncio.Event()

    async def no_answer() -> bool:
        asked.set()
        await asyncio.Event().wait()
        raise AssertionError

    _, _, second = await behind(bench, blocks, begin=no_answer)
    blocks.let_go.set()
    await asyncio.wait_for(asked.wait(), PATIENCE)
    assert bench.runner.is_saturated
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second

    assert not bench.runner.is_saturated


async def test_a_step_waits_for_a_child_process_in_the_same_way(tmp_path: Path) -> None:
    bench = make_bench(waits=CapacityWaits(grace=0.02))
    sleeps = bench.attempt(
        child_handlers.Sleeps, callable="sleeps", execution="process", inputs={"folder": str(tmp_path)}
    )
    first = asyncio.create_task(bench.end(sleeps))
    async with asyncio.timeout(PATIENCE):
        while not bench.runner.is_saturated:
            await asyncio.sleep(0)

    end = await bench.run(child_handlers.ShowsItself, callable="shows", execution="process", timeout_seconds=0.01)

    assert isinstance(end, NoCapacity)
    assert end.reason == "no process of the worker was free for it in time"
    sleeps.cancel.set()
    await first


def test_nobody_waits_for_longer_than_a_minute() -> None:
    assert CapacityWaits(grace=10).patience(30) == 35
    assert CapacityWaits(grace=10).patience(7200) == LONGEST_WAIT_SECONDS
