"""A step with `effect: once` is not repeated when its worker cannot say what became of the attempt."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tasker.engine.exchange import Result
from tasker.execution.attempt.attempt import AttemptCancelled, ClaimLost, ClaimReleased
from tasker.step_handler import StepHandler
from tasker.types import StepContext, StepHandlerResult
from tests.unit.execution.bench import Bench, failure_of
from tests.unit.execution.modes import child_handlers


class Waits(StepHandler):
    def __init__(self) -> None:
        self.started = asyncio.Event()

    async def call(self, context: StepContext) -> StepHandlerResult:
        self.started.set()
        await asyncio.Event().wait()
        raise AssertionError


async def stopped(bench: Bench, end: type[Any], effect: str | None) -> Any:
    handler = Waits()
    attempt = bench.attempt(handler, effect=effect)
    running = asyncio.ensure_future(bench.end(attempt))
    await handler.started.wait()
    attempt.cancel.set(end)
    return await running


async def test_stopped_worker_leaves_an_unknown_outcome(bench: Bench) -> None:
    failure = failure_of(await stopped(bench, ClaimReleased, "once"))
    assert (failure.error_type, failure.retryable, failure.metadata) == (
        "outcome_unknown",
        False,
        {"cause": "worker_lost", "worker": ""},
    )
    assert "the worker stopped while under_test ran; whether the step had its effect is unknown" in failure.message


@pytest.mark.parametrize(
    ("end", "effect"), [(ClaimReleased, None), (ClaimReleased, "pure"), (ClaimLost, "once"), (AttemptCancelled, "once")]
)
async def test_what_others_decide_or_may_repeat_is_not_reported(
    bench: Bench, end: type[Any], effect: str | None
) -> None:
    assert isinstance(await stopped(bench, end, effect), end)


async def test_step_that_was_not_called_is_released(bench: Bench) -> None:
    attempt = bench.attempt(Waits(), effect="once")
    attempt.cancel.set(ClaimReleased)
    assert isinstance(await bench.end(attempt), ClaimReleased)


async def test_timeout_is_an_unknown_outcome(bench: Bench) -> None:
    failure = failure_of(await bench.run(Waits(), effect="once", timeout_seconds=0.001))
    assert (failure.error_type, failure.retryable, failure.metadata["cause"]) == (
        "outcome_unknown",
        False,
        "handler_timeout",
    )


async def test_crash_is_an_unknown_outcome(bench: Bench) -> None:
    end = await bench.run(child_handlers.Ends, inputs={"how": "os._exit"}, execution="process", effect="once")
    assert isinstance(end, Result)
    assert failure_of(end).metadata["cause"] == "handler_crash"


async def test_failure_that_the_handler_reports_is_known(bench: Bench) -> None:
    async def refuse(context: StepContext) -> None:
        raise ValueError("declined")

    assert (await bench.failure(refuse, effect="once")).error_type != "outcome_unknown"
