"""A breaker opens, tries and closes as its policy says; it is told every time."""

from __future__ import annotations

from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasker.resilience.breaker import BreakerState, CircuitBreaker, Permit
from tasker.template.plan import BreakerPolicy

POLICY = BreakerPolicy(failure_threshold=3, timeout_seconds=30, success_threshold=2)


@pytest.fixture
def breaker() -> CircuitBreaker:
    return CircuitBreaker("payments", POLICY)


def begin(breaker: CircuitBreaker, now: float) -> Permit:
    """A call that begins."""
    permit = breaker.allow(now)
    assert permit is not None
    return permit


def fail(breaker: CircuitBreaker, now: float, times: int = 1) -> None:
    for _ in range(times):
        breaker.failed(begin(breaker, now), now)


def succeed(breaker: CircuitBreaker, now: float) -> None:
    breaker.succeeded(begin(breaker, now), now)


def test_it_opens_after_that_many_failures_in_a_row(breaker: CircuitBreaker) -> None:
    fail(breaker, 0, 2)
    assert breaker.state(0) is BreakerState.CLOSED
    fail(breaker, 1)

    assert breaker.state(1) is BreakerState.OPEN
    assert not breaker.allow(2)
    assert breaker.retry_after(2) == 29


def test_a_success_in_between_starts_the_count_anew(breaker: CircuitBreaker) -> None:
    fail(breaker, 0, 2)
    succeed(breaker, 0)
    fail(breaker, 0, 2)

    assert breaker.is_healthy(0)


def test_after_its_timeout_one_trial_may_pass_at_a_time(breaker: CircuitBreaker) -> None:
    fail(breaker, 0, 3)

    assert breaker.state(30) is BreakerState.HALF_OPEN
    trial = begin(breaker, 30)
    assert not breaker.allow(30)
    breaker.succeeded(trial, 31)
    assert breaker.allow(31)


def test_enough_successful_trials_close_it(breaker: CircuitBreaker) -> None:
    fail(breaker, 0, 3)
    for now in (30, 31):
        assert breaker.state(now) is BreakerState.HALF_OPEN
        succeed(breaker, now)

    assert breaker.state(31) is BreakerState.CLOSED
    fail(breaker, 31, 2)
    assert breaker.is_healthy(31), "nothing is left of the failures before"


def test_a_failed_trial_opens_it_again_and_the_successes_before_it_do_not_count(breaker: CircuitBreaker) -> None:
    fail(breaker, 0, 3)
    succeed(breaker, 30)
    fail(breaker, 31)
    assert breaker.retry_after(31) == 30

    succeed(breaker, 61)

    assert breaker.state(61) is BreakerState.HALF_OPEN


def test_a_trial_that_never_ends_blocks_the_next_one_for_one_timeout_only(breaker: CircuitBreaker) -> None:
    fail(breaker, 0, 3)
    begin(breaker, 30)

    assert not breaker.allow(59)
    assert breaker.allow(60)


def test_an_overdue_trial_counts_and_leaves_the_next_one_its_place(breaker: CircuitBreaker) -> None:
    fail(breaker, 0, 3)
    overdue, trial = begin(breaker, 30), begin(breaker, 60)
    breaker.succeeded(overdue, 61)

    assert not breaker.allow(62), "a trial is under way"
    breaker.succeeded(trial, 63)
    assert breaker.is_healthy(63)


def test_an_abandoned_trial_makes_room_for_another(breaker: CircuitBreaker) -> None:
    fail(breaker, 0, 3)
    breaker.abandoned(begin(breaker, 30))

    assert breaker.allow(30)
    assert breaker.state(30) is BreakerState.HALF_OPEN


@pytest.fixture
def early(breaker: CircuitBreaker) -> list[Permit]:
    """Calls that have begun before the breaker opened at 0, and have not ended."""
    early = [begin(breaker, 0) for _ in range(3)]
    fail(breaker, 0, 3)
    return early


def test_calls_that_began_before_it_opened_neither_close_it_nor_keep_it_open(
    breaker: CircuitBreaker, early: list[Permit]
) -> None:
    breaker.failed(early[0], 10)
    breaker.succeeded(early[1], 11)

    assert breaker.retry_after(11) == 19


def test_calls_that_began_before_it_opened_are_no_trials(breaker: CircuitBreaker, early: list[Permit]) -> None:
    breaker.succeeded(early[0], 30)
    breaker.succeeded(early[1], 30)
    assert breaker.state(30) is BreakerState.HALF_OPEN
    breaker.failed(early[2], 30)
    assert breaker.state(30) is BreakerState.HALF_OPEN


@pytest.mark.parametrize("end", ["succeeded", "failed", "abandoned"])
def test_while_a_trial_runs_the_end_of_an_early_call_lets_no_second_one_pass(
    breaker: CircuitBreaker, early: list[Permit], end: str
) -> None:
    trial = begin(breaker, 30)
    getattr(breaker, end)(*((early[0],) if end == "abandoned" else (early[0], 31)))

    assert breaker.state(31) is BreakerState.HALF_OPEN
    assert not breaker.allow(31)
    breaker.succeeded(trial, 32)
    assert breaker.allow(32)


def test_once_closed_the_end_of_an_early_call_counts_neither_way(breaker: CircuitBreaker, early: list[Permit]) -> None:
    succeed(breaker, 30)
    succeed(breaker, 30)
    fail(breaker, 31, 2)
    breaker.failed(early[0], 31)
    assert breaker.is_healthy(31)
    breaker.succeeded(early[1], 31)
    fail(breaker, 31)
    assert not breaker.is_healthy(31)
    assert breaker.metrics().failures == 7, "all are counted"


def test_a_sign_of_recovery_lets_the_trial_pass_early_and_closes_nothing_by_itself(breaker: CircuitBreaker) -> None:
    breaker.encouraged(0)
    assert breaker.is_healthy(0)
    fail(breaker, 0, 3)
    breaker.encouraged(1)

    assert breaker.state(1) is BreakerState.HALF_OPEN
    assert breaker.allow(1)
    assert not breaker.allow(1)


def test_a_sign_of_recovery_never_puts_the_trial_off(breaker: CircuitBreaker) -> None:
    fail(breaker, 0, 3)
    half_open = 30
    assert breaker.state(half_open) is BreakerState.HALF_OPEN

    breaker.encouraged(half_open + 10)
    assert breaker.state(half_open) is BreakerState.HALF_OPEN


def test_it_can_be_forced(breaker: CircuitBreaker) -> None:
    breaker.force_open(5)
    assert not breaker.allow(6)
    breaker.force_closed()
    assert breaker.allow(6)


def test_it_counts_what_became_of_the_calls(breaker: CircuitBreaker) -> None:
    fail(breaker, 0, 3)
    assert not breaker.allow(1)

    counts = breaker.metrics()

    assert (counts.calls, counts.failures, counts.refused, counts.opened) == (3, 3, 1, 1)


@given(st.lists(st.tuples(st.integers(0, 20), st.booleans()), max_size=60))
def test_whatever_happens_it_never_refuses_for_longer_than_its_timeout(calls: list[tuple[int, bool]]) -> None:
    breaker, now = CircuitBreaker("any", POLICY), 0
    for pause, success in calls:
        now += pause
        if (permit := breaker.allow(now)) is not None:
            (breaker.succeeded if success else breaker.failed)(permit, now)
        assert 0 <= breaker.retry_after(now) <= POLICY.timeout_seconds
        assert breaker.state(now) is not BreakerState.OPEN or breaker.retry_after(now) > 0
    assert breaker.allow(now + POLICY.timeout_seconds)


SETTLE = 5


@dataclass
class Model:
    """The rules as docs/resilience.md has them, with a list of everything instead of counters."""

    opened: list[int] = field(default_factory=list)
    """When it opened, each time."""
    trial_from: int = 0
    closed: bool = True
    heard: list[bool] = field(default_factory=list)
    """What the calls since the last change of state said, where they may say something."""
    trials: dict[int, int] = field(default_factory=dict)
    """Trials under way, by number, with their time."""
    began: list[int] = field(default_factory=list)
    """For each call, how often it had opened then."""

    def open(self, now: int) -> None:
        self.closed, self.trial_from, self.heard, self.trials = False, now + 30, [], {}
        self.opened.append(now)

    def close(self) -> None:
        self.closed, self.heard, self.trials = True, [], {}

    def allows(self, now: int) -> bool:
        if not self.closed and (now < self.trial_from or any(now < at + 30 for at in self.trials.values())):
            return False
        if not self.closed:
            self.trials[len(self.began)] = now
        self.began.append(len(self.opened))
        return True

    def ended(self, call: int, said: bool | None, now: int) -> None:
        self.trials.pop(call, None)
        if said is None or self.began[call] < len(self.opened):
            return
        self.heard.append(said)
        if not said and (not self.closed or self.heard[-3:] == [False] * 3):
            self.open(now)
        elif not self.closed and len(self.heard) >= 2 and now >= self.opened[-1] + SETTLE:
            self.close()

    def state(self, now: int) -> BreakerState:
        if self.closed:
            return BreakerState.CLOSED
        return BreakerState.OPEN if now < self.trial_from else BreakerState.HALF_OPEN


def end(breaker: CircuitBreaker, permit: Permit, said: bool | None, now: int) -> None:
    if said is None:
        breaker.abandoned(permit)
    else:
        (breaker.succeeded if said else breaker.failed)(permit, now)


ENDS = st.tuples(st.just("end"), st.integers(0, 5), st.sampled_from([True, False, False, None]))
OTHERS = [("begin",)] * 4 + [("wait", 1), ("wait", 30), ("encouraged",), ("force_open",), ("force_closed",)]


@settings(max_examples=200)
@given(st.lists(st.one_of(ENDS, st.sampled_from(OTHERS)), min_size=20, max_size=60))
def test_calls_that_overlap_in_any_way_open_and_close_it_as_the_rules_say(acts: list[tuple[object, ...]]) -> None:
    breaker, model, now, running = (
        CircuitBreaker("any", POLICY, settle_seconds=SETTLE),
        Model(),
        0,
        list[tuple[int, Permit]](),
    )
    for act in acts:
        match act:
            case ("begin",):
                permit = breaker.allow(now)
                assert (permit is not None) == model.allows(now)
                if permit is not None:
                    running.append((len(model.began) - 1, permit))
            case ("end", int(which), bool() | None as said) if running:
                call, permit = running.pop(which % len(running))
                end(breaker, permit, said, now)
                model.ended(call, said, now)
            case ("wait", int(seconds)):
                now += seconds
            case ("encouraged",):
                breaker.encouraged(now)
                model.trial_from = min(model.trial_from, now)
            case ("force_open",):
                breaker.force_open(now)
                model.open(now)
            case ("force_closed",):
                breaker.force_closed()
                model.close()
        assert breaker.state(now) is model.state(now)
