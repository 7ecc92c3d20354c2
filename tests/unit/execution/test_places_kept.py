"""No thread, child process, timer or place of a worker is lost, whatever goes wrong around a handler."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from tasker.engine.exchange import Result
from tasker.execution.attempt.attempt import ClaimReleased
from tasker.execution.attempt.capacity import CapacityGate, CapacityWaits, HandlerCapacity
from tasker.execution.modes.subprocess import Subprocess
from tasker.json_values import as_stored
from tasker.step_handler import StepHandler
from tasker.types import StepContext, StepHandlerResult
from tests.unit.execution.bench import PATIENCE, Bench
from tests.unit.execution.modes import child_handlers

GRACE = 10.0


class Quick(StepHandler):
    def call(self, context: StepContext) -> StepHandlerResult:
        return self.success({"thread": threading.current_thread().name})


class Begins:
    """Where a waiting step says that its handler is called now. `hangs`: no answer comes."""

    def __init__(self, *, hangs: bool = False) -> None:
        self.asked, self._hangs = 0, hangs

    async def __call__(self) -> bool:
        self.asked += 1
        if self._hangs:
            await asyncio.Event().wait()
        return True


@pytest.fixture
def passing(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[float]]:
    """Seconds that pass on the loop's clock while a step waits for its place."""
    passed, acquire = [0.0], CapacityGate.acquire
    now = asyncio.BaseEventLoop.time

    async def slowly(self: CapacityGate, cancel: Any) -> bool:
        got = await acquire(self, cancel)
        if self.waiting == 0:
            monkeypatch.setattr(asyncio.BaseEventLoop, "time", lambda loop: now(loop) + passed[0])
        return got

    monkeypatch.setattr(CapacityGate, "acquire", slowly)
    yield passed
    monkeypatch.undo()


@pytest.mark.parametrize(("waited", "told"), [(0.4 * GRACE, 0), (0.6 * GRACE, 1), (0.95 * GRACE, 1)])
async def test_a_wait_of_more_than_half_of_the_grace_is_told_before_the_handler_runs(
    bench: Bench, passing: list[float], waited: float, told: int
) -> None:
    begins, places = Begins(), HandlerCapacity(1, "thread", "", CapacityWaits(grace=GRACE))
    attempt = bench.attempt(Quick, begin=begins)
    assert await places.take(bench.attempt(Quick), 30)
    waiting = asyncio.create_task(places.take(attempt, 30))
    await asyncio.sleep(0)
    passing[0] = waited
    places.release()

    assert await asyncio.wait_for(waiting, PATIENCE)
    assert begins.asked == told
    assert (places.at_once, sum(places.waited.counted()[0])) == (1, 1)
    assert places.waited.counted()[1] >= waited * 1000


async def test_a_start_that_cannot_be_told_gives_the_step_and_its_place_back(
    bench: Bench, passing: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasker.execution.attempt.capacity.WRITE_SECONDS", 0.01)
    places = HandlerCapacity(1, "thread", "", CapacityWaits(grace=GRACE))
    attempt = bench.attempt(Quick, begin=Begins(hangs=True))
    assert await places.take(bench.attempt(Quick), 30)
    waiting = asyncio.create_task(places.take(attempt, 30))
    await asyncio.sleep(0)
    passing[0] = GRACE
    places.release()

    assert not await asyncio.wait_for(waiting, PATIENCE)
    assert isinstance(attempt.cancel.end_of(attempt.claim), ClaimReleased)
    assert not places.full


async def test_a_system_that_gives_no_thread_now_gives_one_later(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as refused:
        refused.setattr(threading.Thread, "start", lambda self: (_ for _ in ()).throw(RuntimeError("no more threads")))
        with pytest.raises(RuntimeError, match="no more threads"):
            await bench.run(Quick)

    assert isinstance(await bench.run(Quick), Result)


async def test_a_thread_that_was_replaced_ends_when_its_handler_comes_back(bench: Bench) -> None:
    let_go, strangers = threading.Event(), set(threading.enumerate())

    def threads() -> int:
        """Those of this test: one that an earlier test has left may end at any moment."""
        return len(set(threading.enumerate()) - strangers)

    class Blocks(StepHandler):
        def call(self, context: StepContext) -> StepHandlerResult:
            let_go.wait(PATIENCE)
            return self.success({})

    await bench.run(Blocks, timeout_seconds=0.01)
    assert threads() == 1
    await bench.run(Quick)
    assert threads() == 2, "the stuck thread and the one in its place"
    let_go.set()
    async with asyncio.timeout(PATIENCE):
        while threads() > 1:
            await asyncio.sleep(0.001)
    assert isinstance(await bench.run(Quick), Result)


async def test_a_handler_that_has_ended_leaves_no_timer_behind(bench: Bench) -> None:
    attempt = bench.attempt(Quick, timeout_seconds=3600)
    await bench.end(attempt)
    scheduled: list[asyncio.TimerHandle] = asyncio.get_running_loop()._scheduled  # type: ignore[attr-defined]

    assert not [timer for timer in scheduled if not timer.cancelled() and timer.when() > 3000 + now()]


def now() -> float:
    return asyncio.get_running_loop().time()


async def test_a_child_process_that_cannot_be_started_costs_no_place(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refused() -> Subprocess:
        raise OSError(11, "Resource temporarily unavailable")

    with monkeypatch.context() as patched:
        patched.setattr(Subprocess, "start", refused)
        with pytest.raises(OSError, match="temporarily"):
            await bench.run(child_handlers.ShowsItself, execution="process")

    assert isinstance(await bench.run(child_handlers.ShowsItself, execution="process"), Result)


async def test_a_child_that_died_while_it_was_idle_is_not_asked_again(bench: Bench) -> None:
    first = await bench.run(child_handlers.ShowsItself, execution="process")
    assert isinstance(first, Result)
    pid = as_stored(first.success.encoded)["pid"]
    child = bench.runner._processes._idle[0]
    os.kill(pid, signal.SIGKILL)
    await asyncio.wait_for(asyncio.shield(child.exited), PATIENCE)
    second = await bench.run(child_handlers.ShowsItself, execution="process")

    assert isinstance(second, Result)
    assert second.success
    assert as_stored(second.success.encoded)["pid"] != pid
