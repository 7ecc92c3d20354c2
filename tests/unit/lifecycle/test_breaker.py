"""A breaker opens, tries and closes as its policy says; it is told every time."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasker.contracts.plan import BreakerPolicy
from tasker.lifecycle.breaker import Breaker, BreakerState

POLICY = BreakerPolicy(failure_threshold=3, timeout_seconds=30, success_threshold=2)


@pytest.fixture
def breaker() -> Breaker:
    return Breaker("payments", POLICY)


def fail(breaker: Breaker, now: float, times: int = 1) -> None:
    for _ in range(times):
        assert breaker.allow(now)
        breaker.failed(now)


def test_it_opens_after_that_many_failures_in_a_row(breaker: Breaker) -> None:
    fail(breaker, 0, 2)
    assert breaker.state(0) is BreakerState.CLOSED
    fail(breaker, 1)

    assert breaker.state(1) is BreakerState.OPEN
    assert not breaker.allow(2)
    assert breaker.retry_after(2) == 29


def test_a_success_in_between_starts_the_count_anew(breaker: Breaker) -> None:
    fail(breaker, 0, 2)
    breaker.succeeded(0)
    fail(breaker, 0, 2)

    assert breaker.is_healthy(0)


def test_after_its_timeout_one_trial_may_pass_at_a_time(breaker: Breaker) -> None:
    fail(breaker, 0, 3)

    assert breaker.state(30) is BreakerState.HALF_OPEN
    assert breaker.allow(30)
    assert not breaker.allow(30)
    breaker.succeeded(31)
    assert breaker.allow(31)


def test_enough_successful_trials_close_it(breaker: Breaker) -> None:
    fail(breaker, 0, 3)
    for now in (30, 31):
        assert breaker.state(now) is BreakerState.HALF_OPEN
        assert breaker.allow(now)
        breaker.succeeded(now)

    assert breaker.state(31) is BreakerState.CLOSED
    fail(breaker, 31, 2)
    assert breaker.is_healthy(31), "nothing is left of the failures before"


def test_a_failed_trial_opens_it_again_and_the_successes_before_it_do_not_count(breaker: Breaker) -> None:
    fail(breaker, 0, 3)
    breaker.allow(30)
    breaker.succeeded(30)
    fail(breaker, 31)
    assert breaker.retry_after(31) == 30

    breaker.allow(61)
    breaker.succeeded(61)

    assert breaker.state(61) is BreakerState.HALF_OPEN


def test_a_trial_that_never_ends_blocks_the_next_one_for_one_timeout_only(breaker: Breaker) -> None:
    fail(breaker, 0, 3)
    breaker.allow(30)

    assert not breaker.allow(59)
    assert breaker.allow(60)


def test_an_abandoned_trial_makes_room_for_another(breaker: Breaker) -> None:
    fail(breaker, 0, 3)
    breaker.allow(30)
    breaker.abandoned()

    assert breaker.allow(30)
    assert breaker.state(30) is BreakerState.HALF_OPEN


def test_calls_that_began_before_it_opened_neither_close_it_nor_keep_it_open(breaker: Breaker) -> None:
    fail(breaker, 0, 3)
    breaker.failed(10)
    breaker.succeeded(11)

    assert breaker.retry_after(11) == 19


def test_a_sign_of_recovery_lets_the_trial_pass_early_and_closes_nothing_by_itself(breaker: Breaker) -> None:
    breaker.encouraged(0)
    assert breaker.is_healthy(0)
    fail(breaker, 0, 3)
    breaker.encouraged(1)

    assert breaker.state(1) is BreakerState.HALF_OPEN
    assert breaker.allow(1)
    assert not breaker.allow(1)


def test_it_can_be_forced(breaker: Breaker) -> None:
    breaker.force_open(5)
    assert not breaker.allow(6)
    breaker.force_closed()
    assert breaker.allow(6)


def test_it_counts_what_became_of_the_calls(breaker: Breaker) -> None:
    fail(breaker, 0, 3)
    breaker.allow(1)

    counts = breaker.metrics()

    assert (counts.calls, counts.failures, counts.refused, counts.opened) == (3, 3, 1, 1)


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=60))
def test_whatever_happens_it_never_refuses_for_longer_than_its_timeout(calls: list[tuple[int, bool]]) -> None:
    breaker, now = Breaker("any", POLICY), 0
    for pause, success in calls:
        now += pause
        if breaker.allow(now):
            (breaker.succeeded if success else breaker.failed)(now)
        assert 0 <= breaker.retry_after(now) <= POLICY.timeout_seconds
        assert breaker.state(now) is not BreakerState.OPEN or breaker.retry_after(now) > 0
    assert breaker.allow(now + POLICY.timeout_seconds)
