"""Handlers in threads: off the loop, bounded, and left behind when they do not come back."""

from __future__ import annotations

import asyncio
import contextvars
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tasker.engine.exchange import Result
from tasker.execution.attempt.attempt import AttemptCancelled, ClaimLost, ClaimReleased
from tasker.execution.attempt.capacity import CapacityWaits
from tasker.json_values import as_stored
from tasker.step_handler import StepHandler
from tasker.types import StepContext, StepHandlerResult
from tests.unit.execution.bench import PATIENCE, Bench, make_bench

colour: contextvars.ContextVar[str] = contextvars.ContextVar("colour", default="none")


class Blocks(StepHandler):
    """Blocks its thread until the test lets it go; keeps the contexts it was called with."""

    def __init__(self) -> None:
        self.started, self.let_go = threading.Event(), threading.Event()
        self.contexts: list[StepContext] = []
        self.seen: list[bool] = []

    def call(self, context: StepContext) -> StepHandlerResult:
        self.contexts.append(context)
        self.started.set()
        self.let_go.wait(PATIENCE)
        self.seen.append(context.cancelled)
        return self.success({"late": True})


class Quick(StepHandler):
    def call(self, context: StepContext) -> StepHandlerResult:
        return self.success({"thread": threading.current_thread().name, "colour": colour.get()})


@pytest.fixture
def blocks() -> Iterator[Blocks]:
    handler = Blocks()
    yield handler
    handler.let_go.set()


async def started(handler: Blocks) -> None:
    """Return when the handler runs."""
    assert await asyncio.to_thread(handler.started.wait, PATIENCE)


async def until(true: Callable[[], bool]) -> None:
    """Let the loop turn until the condition holds."""
    async with asyncio.timeout(PATIENCE):
        while not true():
            await asyncio.sleep(0)


async def result_of(bench: Bench, handler: Any, **options: Any) -> Any:
    end = await bench.run(handler, **options)
    assert isinstance(end, Result)
    assert end.success, end.failure
    return as_stored(end.success.encoded)


async def test_a_plain_function_runs_in_a_thread_with_the_callers_context_variables(bench: Bench) -> None:
    colour.set("green")

    result = await result_of(bench, Quick)

    assert result["thread"].startswith("tasker-handler-")
    assert result["colour"] == "green"


async def test_one_thread_serves_many_attempts(bench: Bench) -> None:
    names = {(await result_of(bench, Quick))["thread"] for _ in range(5)}

    assert len(names) == 1


async def test_an_async_handler_in_thread_mode_has_a_loop_of_its_own(bench: Bench) -> None:
    class Handler(StepHandler):
        async def call(self, context: StepContext) -> StepHandlerResult:
            loops.append(asyncio.get_running_loop())
            return self.success({"thread": threading.current_thread().name})

    loops: list[asyncio.AbstractEventLoop] = []
    result = await result_of(bench, Handler, execution="thread")

    assert result["thread"].startswith("tasker-handler-")
    assert loops != [asyncio.get_running_loop()]


async def test_a_result_does_not_wait_for_what_its_handler_has_left_in_the_default_executor(
    bench: Bench, blocks: Blocks
) -> None:
    class Handler(StepHandler):
        async def call(self, context: StepContext) -> StepHandlerResult:
            asyncio.get_running_loop().run_in_executor(None, blocks.call, context)
            asyncio.get_running_loop().run_in_executor(None, ended.append, 1)
            return self.success({"n": await asyncio.to_thread(lambda: 1)})

    ended: list[int] = []
    assert await result_of(bench, Handler, execution="thread") == {"n": 1}
    assert not blocks.seen
    assert bench.leaked == []

    blocks.let_go.set()
    await until(lambda: (blocks.seen, ended) == ([False], [1]))


@pytest.mark.parametrize("end", [lambda: sys.exit(4), lambda: _raise(KeyboardInterrupt()), lambda: _raise(_Odd())])
async def test_a_handler_cannot_end_its_thread(bench: Bench, end: Callable[[], None]) -> None:
    class Handler(StepHandler):
        def call(self, context: StepContext) -> StepHandlerResult:
            end()
            return self.success({})

    failure = await bench.failure(Handler)

    assert (failure.error_type, failure.retryable) == ("handler_error", True)
    assert (await result_of(bench, Quick, callable="quick"))["thread"] == "tasker-handler-1"


async def test_a_timed_out_thread_is_reported_as_one_that_cannot_be_stopped(bench: Bench, blocks: Blocks) -> None:
    attempt = bench.attempt(blocks, timeout_seconds=0.01)

    end = await bench.end(attempt)

    assert isinstance(end, Result)
    failure = end.failure
    assert failure is not None
    assert (failure.error_type, failure.retryable) == ("handler_timeout", True)
    assert "its thread cannot be stopped" in failure.message
    assert bench.leaked == [attempt.claim]
    assert bench.runner.leaked_threads == 1


async def test_a_leaked_thread_is_replaced_and_its_late_result_discarded(bench: Bench, blocks: Blocks) -> None:
    await bench.failure(blocks, timeout_seconds=0.01)

    assert (await result_of(bench, Quick, callable="quick"))["thread"] == "tasker-handler-2"

    blocks.let_go.set()
    await until(lambda: bench.runner.leaked_threads == 0)
    assert blocks.seen == [True]
    assert (await result_of(bench, Quick, callable="quick"))["thread"].startswith("tasker-handler-")


async def test_leaked_threads_are_bounded_and_then_keep_their_place(bench: Bench, blocks: Blocks) -> None:
    for _ in range(2):
        await bench.failure(blocks, timeout_seconds=0.01)
    waiting = asyncio.ensure_future(result_of(bench, Quick, callable="quick"))
    stopped = bench.attempt(Quick, callable="quick")
    stopping = asyncio.ensure_future(bench.end(stopped))
    await until(lambda: stopped.cancel.wake is not None)

    stopped.cancel.set()
    assert isinstance(await stopping, AttemptCancelled)
    assert not waiting.done()

    blocks.let_go.set()
    assert (await waiting)["thread"].startswith("tasker-handler-")


async def test_a_cancelled_thread_sees_it_and_is_waited_for(bench: Bench, blocks: Blocks) -> None:
    attempt = bench.attempt(blocks)
    running = asyncio.ensure_future(bench.end(attempt))
    await started(blocks)

    attempt.cancel.set()
    assert blocks.contexts[0].cancelled
    blocks.let_go.set()

    assert isinstance(await running, AttemptCancelled)
    assert blocks.seen == [True]
    assert bench.leaked == []


async def test_a_cancelled_thread_that_does_not_come_back_is_left_behind_at_its_timeout(
    bench: Bench, blocks: Blocks
) -> None:
    attempt = bench.attempt(blocks, timeout_seconds=0.05)
    running = asyncio.ensure_future(bench.end(attempt))
    await started(blocks)

    attempt.cancel.set()

    assert isinstance(await running, AttemptCancelled)
    assert bench.leaked == [attempt.claim]


async def test_a_thread_that_runs_a_step_of_somebody_else_is_left_behind_after_a_moment(
    bench: Bench, blocks: Blocks
) -> None:
    attempt = bench.attempt(blocks)
    running = asyncio.ensure_future(bench.end(attempt))
    await started(blocks)

    attempt.cancel.set(ClaimLost)

    assert isinstance(await running, ClaimLost)
    assert bench.leaked == [attempt.claim]


async def test_cancelling_the_task_of_an_attempt_leaves_its_thread_behind(bench: Bench, blocks: Blocks) -> None:
    running = asyncio.ensure_future(bench.runner.run(bench.attempt(blocks)))
    await started(blocks)

    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running

    assert bench.runner.leaked_threads == 1
    blocks.let_go.set()
    await until(lambda: bench.runner.leaked_threads == 0)
    assert (await result_of(bench, Quick, callable="quick"))["thread"].startswith("tasker-handler-")


async def test_a_plain_function_that_returns_a_coroutine_is_told_to_be_async(bench: Bench) -> None:
    async def work() -> None: ...

    class Handler(StepHandler):
        def call(self, context: StepContext) -> Any:
            return work()

    failure = await bench.failure(Handler)

    assert (failure.error_type, failure.retryable) == ("invalid_handler_result", False)
    assert "declare it with `async def`" in failure.message


async def test_what_a_thread_returns_after_it_was_told_to_stop_is_discarded(bench: Bench, blocks: Blocks) -> None:
    attempt = bench.attempt(blocks)
    running = asyncio.ensure_future(bench.end(attempt))
    await started(blocks)

    attempt.cancel.set(ClaimReleased)
    blocks.let_go.set()

    assert isinstance(await running, ClaimReleased)
    assert blocks.seen == [True]


class _Odd(BaseException):
    pass


def _raise(error: BaseException) -> None:
    raise error


async def test_a_step_that_waits_too_long_for_a_thread_is_warned_of_and_runs_all_the_same(
    blocks: Blocks, caplog: pytest.LogCaptureFixture
) -> None:
    bench = make_bench(waits=CapacityWaits(starvation=0.01))
    first = asyncio.create_task(bench.run(blocks, callable="blocks"))
    await started(blocks)
    second = asyncio.create_task(bench.run(Quick, callable="quick"))
    await until(lambda: bench.runner.starved == 1)
    blocks.let_go.set()
    ends = [await first, await second]
    await bench.runner.close(0)

    assert all(isinstance(end, Result) and end.failure is None for end in ends)
    assert "step_waits_for_thread" in caplog.text
    assert "places=1 hint='raise worker.execution.threads" in caplog.text


async def test_a_step_that_finds_a_thread_is_not_warned_of(bench: Bench) -> None:
    await bench.run(Quick)

    assert bench.runner.starved == 0
