"""Async handlers: on the loop, stoppable at every await."""

from __future__ import annotations

import asyncio
import threading
import time
from typing import Any

import pytest

from tasker.engine.exchange import Result
from tasker.execution.attempt import runner
from tasker.execution.attempt.attempt import AttemptCancelled, ClaimLost, ClaimReleased, ClaimSnoozed
from tasker.execution.attempt.call import context_of
from tasker.execution.modes import event_loop as async_mode
from tasker.json_values import as_stored
from tasker.step_handler import StepHandler, again_in
from tasker.template.error_rules import parse_overrides
from tasker.types import StepContext, StepHandlerResult
from tests.unit.execution.bench import PATIENCE, Bench, failure_of


class Waits(StepHandler):
    """Waits for ever; `started` and `stopped` tell the test where it is."""

    def __init__(self) -> None:
        self.started, self.stopped = asyncio.Event(), asyncio.Event()

    async def call(self, context: StepContext) -> StepHandlerResult:
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()
        return self.success({})


async def test_a_result_comes_with_its_json_and_the_duration_by_the_clock(bench: Bench) -> None:
    class Handler(StepHandler):
        async def call(self, context: StepContext) -> StepHandlerResult:
            bench.clock.seconds += 0.25
            data = {"total": context.input_data["amount"], "n": context.get_dependency_field("above", "n")}
            return self.success(data, {"source": "test"})

    end = await bench.run(Handler)

    assert isinstance(end, Result)
    assert as_stored(end.success.encoded) == {"total": 5, "n": 1}
    assert end.success.encoded.text == '{"total":5,"n":1}'
    assert end.success.metadata == {"source": "test"}
    assert end.duration_ms == 250


async def test_an_async_handler_runs_on_the_loop_in_the_task_of_its_attempt(bench: Bench) -> None:
    seen: list[Any] = []

    class Handler(StepHandler):
        async def call(self, context: StepContext) -> StepHandlerResult:
            seen.append((threading.current_thread(), asyncio.current_task()))
            return self.success({})

    await bench.run(Handler)

    assert seen == [(threading.current_thread(), asyncio.current_task())]


async def test_a_handler_over_its_time_is_cancelled_and_fails_as_handler_timeout(bench: Bench) -> None:
    handler = Waits()

    failure = await bench.failure(handler, timeout_seconds=0.01)

    assert (failure.error_type, failure.retryable) == ("handler_timeout", True)
    assert "did not finish within its timeout of 0.01 seconds" in failure.message
    assert handler.stopped.is_set()


async def test_a_handler_is_cancelled_at_the_deadline_of_its_task_if_that_is_before_its_timeout(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "monotonic", lambda: 100.0)
    handler = Waits()

    failure = await bench.failure(handler, timeout_seconds=60, ends_at=100.01)

    assert (failure.error_type, failure.retryable) == ("deadline_exceeded", False)
    assert handler.stopped.is_set()


async def test_the_timeout_counts_if_it_is_before_the_deadline(bench: Bench) -> None:
    failure = await bench.failure(Waits(), timeout_seconds=0.01, ends_at=time.monotonic() + 60)

    assert (failure.error_type, failure.retryable) == ("handler_timeout", True)


async def test_a_handler_is_not_called_after_the_deadline(bench: Bench) -> None:
    handler = Waits()

    failure = await bench.failure(handler, ends_at=time.monotonic() - 1)

    assert failure.error_type == "deadline_exceeded"
    assert not handler.stopped.is_set()


@pytest.mark.parametrize("left", [None, 60.0, -60.0])
async def test_a_handler_sees_how_much_time_is_left(bench: Bench, left: float | None) -> None:
    ends_at = None if left is None else time.monotonic() + left
    seen = context_of(bench.attempt(Waits(), ends_at=ends_at)).time_left

    assert seen is None if left is None else seen == pytest.approx(max(0.0, left), abs=PATIENCE)


async def test_a_timeout_leaves_no_cancel_behind_in_the_callers_task(bench: Bench) -> None:
    await bench.failure(Waits(), timeout_seconds=0.01)

    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_timeout_inside_the_handler_is_the_handlers_own(bench: Bench) -> None:
    class Handler(StepHandler):
        async def call(self, context: StepContext) -> StepHandlerResult:
            async with asyncio.timeout(0.001):
                await asyncio.Event().wait()
            return self.success({})

    failure = await bench.failure(Handler)

    assert failure.error_type == "timeout"
    assert failure.metadata["exception_type"] == "TimeoutError"


class CancelsAndGoesOn(StepHandler):
    """Leaves a cancel uncounted, as libraries do that stop what they wait for by `task.cancel()`."""

    async def call(self, context: StepContext) -> StepHandlerResult:
        cancel_this_task()
        try:
            await asyncio.sleep(0)
        except asyncio.CancelledError:
            await asyncio.Event().wait()
        return self.success({})


def cancel_this_task() -> None:
    task = asyncio.current_task()
    assert task is not None
    task.cancel()


async def test_a_timeout_is_one_where_a_library_has_left_a_cancel_uncounted(bench: Bench) -> None:
    failure = await bench.failure(CancelsAndGoesOn, timeout_seconds=0.01)

    assert failure.error_type == "handler_timeout"
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_the_flag_stops_a_handler_that_has_left_a_cancel_uncounted(bench: Bench) -> None:
    attempt = bench.attempt(CancelsAndGoesOn)
    running = asyncio.ensure_future(bench.runner.run(attempt))
    await asyncio.sleep(0)
    await asyncio.sleep(0)

    attempt.cancel.set(ClaimReleased)

    assert isinstance(await running, ClaimReleased)


async def test_a_cancel_of_the_handlers_last_step_is_not_raised_in_the_attempt(bench: Bench) -> None:
    class Handler(StepHandler):
        async def call(self, context: StepContext) -> StepHandlerResult:
            cancel_this_task()
            return self.success({})

    end = await bench.runner.run(bench.attempt(Handler))
    await asyncio.sleep(0)

    assert isinstance(end, Result)
    assert end.failure is None
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_what_a_handler_returns_after_its_time_is_discarded(bench: Bench) -> None:
    class Handler(StepHandler):
        async def call(self, context: StepContext) -> StepHandlerResult:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                return self.success({"cancelled": context.cancelled})
            return self.success({})

    failure = await bench.failure(Handler, timeout_seconds=0.01)

    assert failure.error_type == "handler_timeout"


async def test_a_handler_that_swallows_its_cancellation_is_cancelled_again(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(async_mode, "REPEAT_WARNING_SECONDS", 0.001)
    swallowed: list[int] = []

    class Handler(StepHandler):
        async def call(self, context: StepContext) -> StepHandlerResult:
            while len(swallowed) < 3:
                try:
                    await asyncio.Event().wait()
                except asyncio.CancelledError:
                    swallowed.append(1)
            return self.success({})

    failure = await bench.failure(Handler, timeout_seconds=0.001)

    assert failure.error_type == "handler_timeout"
    assert len(swallowed) == 3


@pytest.mark.parametrize("end", [AttemptCancelled, ClaimLost])
async def test_the_flag_cancels_the_handler_and_nothing_is_reported(bench: Bench, end: type[AttemptCancelled]) -> None:
    handler = Waits()
    attempt = bench.attempt(handler)
    running = asyncio.ensure_future(bench.end(attempt))
    await handler.started.wait()

    attempt.cancel.set(end)

    assert type(await running) is end
    assert handler.stopped.is_set()


async def test_an_attempt_that_was_stopped_before_it_began_never_reaches_the_handler(bench: Bench) -> None:
    handler = Waits()
    attempt = bench.attempt(handler)
    attempt.cancel.set()

    assert isinstance(await bench.end(attempt), AttemptCancelled)
    assert not handler.started.is_set()


async def test_a_cancelled_error_of_the_handlers_own_is_a_failure(bench: Bench) -> None:
    class Handler(StepHandler):
        async def call(self, context: StepContext) -> StepHandlerResult:
            inner = asyncio.ensure_future(asyncio.Event().wait())
            inner.cancel()
            await inner
            return self.success({})

    failure = await bench.failure(Handler)

    assert failure.error_type == "handler_error"
    assert "but Tasker did not cancel it" in failure.message


async def test_cancelling_the_task_of_an_attempt_goes_through(bench: Bench) -> None:
    handler = Waits()
    running = asyncio.ensure_future(bench.runner.run(bench.attempt(handler)))
    await handler.started.wait()

    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
    assert handler.stopped.is_set()


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
async def test_a_handler_cannot_end_the_worker(bench: Bench, error: BaseException) -> None:
    class Handler(StepHandler):
        async def call(self, context: StepContext) -> StepHandlerResult:
            raise error

    failure = await bench.failure(Handler)

    assert (failure.error_type, failure.retryable) == ("handler_error", True)
    assert repr(error) in failure.message
    assert failure.metadata["exception_type"] == type(error).__name__


async def test_two_attempts_run_side_by_side(bench: Bench) -> None:
    handler = Waits()
    first, second = bench.attempt(handler), bench.attempt(handler)
    running = [asyncio.ensure_future(bench.end(attempt)) for attempt in (first, second)]
    await handler.started.wait()

    first.cancel.set()
    second.cancel.set(ClaimLost)

    assert [type(end) for end in await asyncio.gather(*running)] == [AttemptCancelled, ClaimLost]


async def test_async_mode_never_runs_a_plain_function_on_the_loop(bench: Bench) -> None:
    called: list[StepContext] = []

    class Handler(StepHandler):
        def call(self, context: StepContext) -> StepHandlerResult:
            called.append(context)
            return self.success({})

    failure = failure_of(await bench.run(Handler, execution="async"))

    assert (failure.error_type, failure.retryable) == ("execution_mode_mismatch", False)
    assert "declare it with `async def`" in failure.message
    assert not called


class LooksAgain(StepHandler):
    async def call(self, context: StepContext) -> StepHandlerResult:
        try:
            again_in("5m", reason="not paid yet", limit=7)
        except Exception as error:
            return self.failure(str(error))


async def test_a_handler_that_looks_again_later_gives_its_claim_back_for_that_time(bench: Bench) -> None:
    end = await bench.run(LooksAgain)

    assert isinstance(end, ClaimSnoozed)
    assert (end.delay_ms, end.reason, end.limit) == (300_000, "not paid yet", 7)


@pytest.mark.parametrize("left", [299.0, 1.0])
async def test_a_handler_that_would_look_again_after_the_deadline_fails_at_once(bench: Bench, left: float) -> None:
    failure = await bench.failure(LooksAgain, ends_at=time.monotonic() + left)

    assert (failure.error_type, failure.retryable) == ("deadline_too_near", False)
    assert "asked to be called again in 300s" in failure.message


async def test_rules_of_the_configuration_apply_from_the_moment_they_are_replaced(bench: Bench) -> None:
    class Handler(StepHandler):
        async def call(self, context: StepContext) -> StepHandlerResult:
            raise ConnectionResetError("gone")

    before = await bench.failure(Handler)
    bench.runner.error_rules = parse_overrides("shop/orders never ConnectionError")
    after = await bench.failure(Handler)
    bench.runner.error_rules = parse_overrides("other never ConnectionError")
    other = await bench.failure(Handler)

    assert [failure.retryable for failure in (before, after, other)] == [True, False, True]
    assert after.why == "the configuration never retries ConnectionError"
