"""The breakers of a process: what they let pass, what they say, and that none minds another."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tasker.resilience.breaker import BreakerState, CircuitBreaker, GuardedCircuit, Permit, SlowCalls
from tasker.resilience.breakers import BreakerPolicies, Breakers
from tasker.template.plan import BreakerPolicy
from tests.unit.execution.bench import FakeClock

POLICY = BreakerPolicy(failure_threshold=2, timeout_seconds=30, success_threshold=1)


class Refused(Exception):
    """A call that was not made."""


class Outage(Exception):
    """A call that failed."""


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def guard(clock: FakeClock) -> GuardedCircuit:
    return GuardedCircuit(CircuitBreaker("payments", POLICY), clock)


def begin(guard: GuardedCircuit) -> Permit:
    """A call that begins."""
    permit = guard.should_allow()
    assert permit is not None
    return permit


async def answer() -> str:
    return "here"


async def fail(error: BaseException) -> str:
    raise error


async def ask(guard: GuardedCircuit, error: BaseException | None = None) -> str:
    return await guard.call(
        lambda: fail(error) if error else answer(), Refused, lambda error: isinstance(error, Outage)
    )


async def break_down(guard: GuardedCircuit, times: int = 2) -> None:
    for _ in range(times):
        with pytest.raises(Outage):
            await ask(guard, Outage("no answer\nand a second line"))


async def test_open_it_refuses_at_once_and_says_for_how_long(guard: GuardedCircuit, clock: FakeClock) -> None:
    await break_down(guard)
    clock.seconds += 10

    with pytest.raises(Refused) as caught:
        await ask(guard)
    assert caught.value.args == (20,)


async def test_after_its_time_a_call_closes_it(guard: GuardedCircuit, clock: FakeClock) -> None:
    await break_down(guard)
    clock.seconds += 30

    assert await ask(guard) == "here"
    assert guard.is_healthy()


async def test_what_says_nothing_about_the_guarded_does_not_count(guard: GuardedCircuit, clock: FakeClock) -> None:
    for error in (ValueError("a mistake of the caller"), asyncio.CancelledError()) * 3:
        with pytest.raises(type(error)):
            await ask(guard, error)
    assert guard.is_healthy()


async def test_a_cancelled_trial_makes_room_for_another(guard: GuardedCircuit, clock: FakeClock) -> None:
    await break_down(guard)
    clock.seconds += 30
    with pytest.raises(asyncio.CancelledError):
        await ask(guard, asyncio.CancelledError())

    assert await ask(guard) == "here"


async def test_calls_in_flight_when_it_opened_close_nothing_and_are_no_trial(
    guard: GuardedCircuit, clock: FakeClock
) -> None:
    """Six in flight, two fail: after the timeout the others' ends neither close it nor let two trials pass."""
    go = asyncio.Event()

    async def slow() -> None:
        await go.wait()

    early = [asyncio.create_task(guard.call(slow, Refused, lambda _: True)) for _ in range(4)]
    await asyncio.sleep(0)
    await break_down(guard)
    clock.seconds += 30
    trial = begin(guard)
    go.set()
    await asyncio.gather(*early)

    assert guard.state is BreakerState.HALF_OPEN
    assert guard.should_allow() is None
    guard.record_success(trial)
    assert guard.is_healthy()


async def test_every_change_of_state_is_named_once_in_the_log_and_told(
    guard: GuardedCircuit, clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[BreakerState] = []
    guard.listeners.append(lambda: told.append(guard.state))
    with caplog.at_level(logging.INFO, "tasker.breakers"):
        await break_down(guard)
        for _ in range(3):
            with pytest.raises(Refused):
                await ask(guard)
        clock.seconds += 30
        await ask(guard)

    assert [(record.levelname, record.getMessage()) for record in caplog.records] == [
        ("WARNING", "circuit_breaker name=payments from=closed to=open error=no answer"),
        ("INFO", "circuit_breaker name=payments from=open to=half_open error=no answer"),
        ("INFO", "circuit_breaker name=payments from=half_open to=closed error=no answer"),
    ]
    assert told == [BreakerState.OPEN, BreakerState.HALF_OPEN, BreakerState.CLOSED]


def test_slow_calls_that_succeed_open_it_and_quick_ones_do_not(guard: GuardedCircuit, clock: FakeClock) -> None:
    calls = SlowCalls(guard, clock, slow_seconds=0.1)
    for seconds in (0.2, 0.1, 0.2, 0.05):
        calls.record_success(begin(guard), seconds)
    assert guard.is_healthy(), "never two in a row"
    for _ in range(2):
        calls.record_success(begin(guard), 0.2)

    assert guard.state is BreakerState.OPEN
    assert calls.count == 4
    assert guard.reading().error == "slow: 200 ms, more than 100 ms"


def test_no_breaker_changes_another(clock: FakeClock) -> None:
    breakers = Breakers(clock)
    guards = [breakers.messaging, breakers.database, breakers.task_readiness, breakers.completion.guard]
    for opened in guards:
        opened.force_open()
        assert [guard is opened for guard in guards] == [not guard.is_healthy() for guard in guards]
        opened.force_closed()


def test_the_health_names_every_breaker_in_use_and_what_opened_it(clock: FakeClock) -> None:
    breakers = Breakers(clock, BreakerPolicies(database=POLICY))
    assert breakers.health().status == "healthy"
    breakers.completion.guard.notes.append(lambda: "buffer full: 1000 of 1000")
    for _ in range(2):
        breakers.database.record_failure(begin(breakers.database), "cannot connect to database 'tasker' on db.internal")

    found = breakers.health()

    assert found.status == "unhealthy"
    assert found.message == (
        "2 circuit breakers: 1 closed, 1 open, 0 half-open. Details: "
        "completion: closed (0 calls, 0 failures, buffer full: 1000 of 1000); "
        "database: open (2 calls, 2 failures, cannot connect to database 'tasker' on db.internal)"
    )
    clock.seconds += 30
    assert breakers.health().status == "degraded"


def test_a_breaker_that_opened_does_not_close_before_it_has_settled(clock: FakeClock) -> None:
    guard = Breakers(clock, BreakerPolicies(messaging=POLICY, settle_seconds=5)).messaging
    guard.force_open()
    guard.encouraged()
    for seconds, state in ((0, BreakerState.HALF_OPEN), (4, BreakerState.HALF_OPEN), (5, BreakerState.CLOSED)):
        clock.seconds = 100 + seconds
        guard.record_success(begin(guard))
        assert guard.state is state


def test_breakers_around_handlers_are_in_the_health_and_keep_their_thresholds(clock: FakeClock) -> None:
    breakers = Breakers(clock)
    stripe = breakers.of_handler("stripe", POLICY)
    assert breakers.of_handler("stripe", POLICY) is stripe
    assert breakers.of_handler("stripe", BreakerPolicy(1)) is not stripe
    breakers.change(BreakerPolicies())
    for _ in range(2):
        stripe.record_failure(begin(stripe), "no answer")

    found = breakers.health()

    assert found.status == "unhealthy"
    assert "stripe: open (2 calls, 2 failures, no answer); stripe: closed (0 calls, 0 failures)" in found.message
