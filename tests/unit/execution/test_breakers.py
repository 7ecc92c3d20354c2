"""The breaker around a handler: open, it puts attempts off without running the handler."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from tasker.engine.exchange import Result
from tasker.errors import PermanentError, RetryableError
from tasker.execution.attempt.attempt import AttemptEnd, ClaimDeferred
from tasker.step_handler import StepHandler
from tasker.template.plan import StepBreaker
from tasker.types import StepContext, StepHandlerResult
from tests.unit.execution.bench import Bench

POLICY = StepBreaker(failure_threshold=2, timeout_seconds=30, success_threshold=1)


class Remote(StepHandler):
    """Fails with `error` while there is one. `calls` counts."""

    error: Exception | None = None
    calls = 0

    async def call(self, context: StepContext) -> StepHandlerResult:
        self.calls += 1
        if self.error:
            raise self.error
        return self.success({})


async def run(
    bench: Bench, handler: Remote, times: int = 1, policy: StepBreaker | None = POLICY, **step: str
) -> list[AttemptEnd]:
    made = bench.attempt(handler, callable=f"remote{id(handler)}", circuit_breaker=policy, **step)
    return [await bench.end(made) for _ in range(times)]


async def test_after_failures_in_a_row_the_handler_is_not_called_any_more(bench: Bench) -> None:
    handler = Remote()
    handler.error = RetryableError("no answer")
    await run(bench, handler, 2)
    bench.clock.seconds += 10

    (end,) = await run(bench, handler)

    assert isinstance(end, ClaimDeferred)
    assert end.delay_ms == 20_000
    assert handler.calls == 2
    assert "shop/orders/charge: open (2 calls, 2 failures, no answer)" in bench.breakers.health().message


async def test_after_the_timeout_a_trial_runs_and_closes_it(bench: Bench) -> None:
    handler = Remote()
    handler.error = RetryableError("no answer")
    await run(bench, handler, 2)
    handler.error = None
    bench.clock.seconds += 30

    ends = await run(bench, handler, 3)

    assert all(isinstance(end, Result) for end in ends)
    assert bench.breakers.health().status == "healthy"
    assert "shop/orders/charge: closed (5 calls" in bench.breakers.health().message


async def test_a_permanent_failure_says_nothing_about_what_is_behind_the_handler(bench: Bench) -> None:
    handler = Remote()
    handler.error = PermanentError("the card was refused")

    assert all(isinstance(end, Result) for end in await run(bench, handler, 10))


async def test_a_step_without_a_breaker_is_never_put_off(bench: Bench) -> None:
    handler = Remote()
    handler.error = RetryableError("no answer")

    assert all(isinstance(end, Result) for end in await run(bench, handler, 10, policy=None))
    assert "none in use" in bench.breakers.health().message


async def test_steps_that_name_the_same_breaker_share_it_as_long_as_their_settings_agree(bench: Bench) -> None:
    named = replace(POLICY, name="stripe")
    handler = Remote()
    handler.error = RetryableError("no answer")
    await run(bench, handler, 2, named)

    (other,) = await run(bench, Remote(), 1, named, name="refund")
    (alone,) = await run(bench, Remote(), 1, POLICY, name="refund")
    (different,) = await run(bench, Remote(), 1, replace(named, failure_threshold=9), name="refund")

    assert isinstance(other, ClaimDeferred)
    assert other.reason == "the circuit breaker of stripe is open"
    assert isinstance(alone, Result)
    assert isinstance(different, Result)


async def test_an_attempt_that_began_before_the_breaker_opened_is_no_trial(bench: Bench) -> None:
    class Slow(Remote):
        go = asyncio.Event()

        async def call(self, context: StepContext) -> StepHandlerResult:
            await self.go.wait()
            return self.success({})

    early = asyncio.create_task(run(bench, Slow()))
    await asyncio.sleep(0)
    handler = Remote()
    handler.error = RetryableError("no answer")
    await run(bench, handler, 2)
    bench.clock.seconds += 30
    Slow.go.set()
    await early

    assert bench.breakers.health().status == "degraded", "half-open: nothing was tried yet"


async def test_a_trial_that_came_to_nothing_leaves_its_place_to_the_next(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    handler = Remote()
    handler.error = RetryableError("no answer")
    await run(bench, handler, 2)
    handler.error = None
    bench.clock.seconds += 30

    async def no_thread(*_: object) -> AttemptEnd:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as broken:
        broken.setattr(bench.runner, "_call", no_thread)
        with pytest.raises(RuntimeError, match="new thread"):
            await run(bench, handler)

    (end,) = await run(bench, handler)
    assert isinstance(end, Result)
