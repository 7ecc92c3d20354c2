"""When a failed attempt is repeated, and how long that waits."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasker.engine.retry import STRATEGIES, Fail, FailReason, Retry, decide_failure, delay_ms, is_eligible
from tasker.handlers.claims import Failure, RetryTimes
from tasker.template.plan import RetryPolicy
from tasker.template.retry import RETRY_PROFILES

TRANSIENT = Failure("the service is away", "NetworkError", retryable=True)
PERMANENT = Failure("no such account", "ValidationError", retryable=False)
FOREVER = 999_999


def delays(policy: RetryPolicy, count: int) -> list[int]:
    return [delay_ms(policy, failures) for failures in range(1, count + 1)]


def exponential(base: int, cap: int, **fields) -> RetryPolicy:
    return RetryPolicy(backoff_base_ms=base, max_backoff_ms=cap, **fields)


# Eligibility: the boundary tests that the original carries.


def test_max_attempts_zero_allows_first_execution() -> None:
    assert is_eligible(0, True, 0)


def test_max_attempts_zero_blocks_after_first() -> None:
    assert not is_eligible(1, True, 0)


def test_max_attempts_one_semantics() -> None:
    assert [is_eligible(n, True, 1) for n in range(3)] == [True, False, False]


def test_max_attempts_three_progression() -> None:
    assert [is_eligible(n, True, 3) for n in range(5)] == [True, True, True, False, False]


def test_first_attempt_ignores_retryable_flag() -> None:
    assert [is_eligible(0, flag, 1) for flag in (True, False, None)] == [True, True, True]


def test_retries_require_retryable_true() -> None:
    assert [is_eligible(1, flag, 3) for flag in (True, False, None)] == [True, False, True]


def test_missing_values_mean_retryable_with_three_attempts() -> None:
    assert is_eligible(None, None, None)
    assert [is_eligible(n, None, None) for n in (1, 2, 3)] == [True, True, False]


def test_a_step_may_be_retried_until_somebody_intervenes() -> None:
    assert is_eligible(FOREVER - 1, True, FOREVER)


# Delays: the published sequences.


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        (exponential(1000, 30_000), [1000, 2000, 4000, 8000, 16_000, 30_000, 30_000]),
        (exponential(100, 1000), [100, 200, 400, 800, 1000]),
        (exponential(60_000, 3_600_000), [60_000, 120_000, 240_000, 480_000, 960_000, 1_920_000, 3_600_000]),
        (exponential(5000, 300_000), [5000, 10_000, 20_000, 40_000]),
        (exponential(200, 10_000, multiplier=1.5), [200, 300, 450, 675, 1012]),
        (RetryPolicy(backoff="linear", backoff_base_ms=1000), [1000, 2000, 3000]),
        (RetryPolicy(backoff="linear", backoff_base_ms=5000), [5000, 10_000, 15_000, 20_000]),
        (RetryPolicy(backoff="linear", backoff_base_ms=1000, increment_ms=5000), [1000, 6000, 11_000, 16_000]),
        (RetryPolicy(backoff="linear", backoff_base_ms=1000, increment_ms=0), [1000, 1000]),
        (RetryPolicy(backoff="fibonacci", backoff_base_ms=100), [100, 100, 200, 300, 500, 800, 1300]),
        (RetryPolicy(backoff="fibonacci", backoff_base_ms=0), [0, 0, 0]),
        (RetryPolicy(backoff="fixed", backoff_base_ms=5000), [5000, 5000, 5000]),
        (RetryPolicy(backoff="none", backoff_base_ms=5000), [0, 0, 0]),
    ],
)
def test_the_delays_are_the_published_ones(policy: RetryPolicy, expected: list[int]) -> None:
    assert delays(policy, len(expected)) == expected


def test_listed_delays_come_one_after_the_other_the_last_one_again_and_never_above_the_cap() -> None:
    policy = RetryPolicy(delays_ms=(1000, 5000, 15_000, 60_000), max_backoff_ms=30_000)
    assert [delay_ms(policy, failures) for failures in range(1, 7)] == [1000, 5000, 15_000, 30_000, 30_000, 30_000]
    assert delay_ms(replace(policy, jitter=0.1), 2, random=0.0) == 4500


def test_four_retries_of_a_hundred_milliseconds_and_then_none() -> None:
    policy = exponential(100, 1000, max_attempts=5)
    decisions = [decide_failure(policy, attempt, TRANSIENT, 0.5) for attempt in range(1, 6)]
    assert decisions[:4] == [Retry(100), Retry(200), Retry(400), Retry(800)]
    assert isinstance(decisions[4], Fail)


@pytest.mark.parametrize(
    ("profile", "first", "cap", "max_attempts"),
    [
        ("single", [1000], 30_000, 1),
        ("transient", [1000, 2000, 4000], 30_000, 3),
        ("critical", [5000, 10_000, 20_000], 300_000, 10),
        ("conservative", [2000, 4000, 8000], 300_000, 8),
        ("balanced", [1000, 2000, 4000], 60_000, 5),
        ("aggressive", [200, 300, 450], 10_000, 3),
        ("external_api", [500, 1000, 2000], 30_000, 5),
        ("database", [100, 150, 225], 5000, 3),
        ("rate_limited", [1000, 6000, 11_000], 60_000, 10),
        ("health_check", [30_000, 30_000], 30_000, 3),
        ("email", [1000, 2000, 4000], 300_000, 5),
    ],
)
def test_a_profile_has_its_published_delays(profile: str, first: list[int], cap: int, max_attempts: int) -> None:
    policy = RETRY_PROFILES[profile]
    assert delays(policy, len(first)) == first
    assert policy.max_attempts == max_attempts
    assert policy.backoff == "fixed" or delay_ms(policy, 1000) == cap


@pytest.mark.parametrize("backoff", STRATEGIES)
def test_endless_retries_never_overflow(backoff: str) -> None:
    policy = RetryPolicy(backoff=backoff, max_attempts=FOREVER)
    assert 0 <= delay_ms(policy, FOREVER - 1) <= policy.max_backoff_ms


def test_a_small_multiplier_still_reaches_the_cap() -> None:
    assert delay_ms(exponential(1000, 60_000, multiplier=1.01), 1000) == 60_000


policies = st.builds(
    RetryPolicy,
    backoff=st.sampled_from(STRATEGIES),
    backoff_base_ms=st.integers(0, 100_000),
    max_backoff_ms=st.integers(0, 1_000_000),
    multiplier=st.floats(1.0, 10.0),
    increment_ms=st.none() | st.integers(0, 10_000),
    jitter=st.floats(0.0, 1.0),
)
randoms = st.floats(0.0, 1.0, exclude_max=True)


@given(policies, st.integers(1, 200), randoms)
def test_a_delay_is_never_negative_and_never_above_the_cap(policy: RetryPolicy, failures: int, random: float) -> None:
    assert 0 <= delay_ms(policy, failures, random) <= policy.max_backoff_ms


@given(policies, st.integers(1, 200))
def test_without_jitter_a_later_delay_is_never_shorter(policy: RetryPolicy, failures: int) -> None:
    plain = replace(policy, jitter=0.0)
    assert delay_ms(plain, failures) <= delay_ms(plain, failures + 1)


@given(policies, st.integers(1, 50), randoms)
def test_jitter_stays_within_its_share(policy: RetryPolicy, failures: int, random: float) -> None:
    middle = delay_ms(replace(policy, jitter=0.0), failures)
    assert abs(delay_ms(policy, failures, random) - middle) <= policy.jitter * middle + 1


def test_jitter_of_ten_percent_spreads_twenty_seconds_from_eighteen_to_twenty_two() -> None:
    policy = RetryPolicy(backoff="fixed", backoff_base_ms=20_000, jitter=0.1)
    assert delay_ms(policy, 1, 0.0) == 18_000
    assert delay_ms(policy, 1, 0.5) == 20_000
    assert 21_999 <= delay_ms(policy, 1, 0.999999) <= 22_000


# The decision.


def test_a_permanent_failure_is_not_retried() -> None:
    assert decide_failure(RetryPolicy(), 1, PERMANENT, 0.5) == Fail(
        FailReason.NOT_RETRYABLE, "the failure is permanent"
    )


def test_a_step_that_is_not_retryable_runs_once() -> None:
    decision = decide_failure(RetryPolicy(retryable=False, max_attempts=5), 1, TRANSIENT, 0.5)
    assert isinstance(decision, Fail)
    assert decision.reason == FailReason.RETRY_DISABLED


@pytest.mark.parametrize(("max_attempts", "runs"), [(0, 1), (1, 1), (2, 2), (5, 5)])
def test_max_attempts_counts_executions(max_attempts: int, runs: int) -> None:
    policy = RetryPolicy(max_attempts=max_attempts)
    decisions = [decide_failure(policy, attempt, TRANSIENT, 0.5) for attempt in range(1, runs + 1)]
    assert all(isinstance(decision, Retry) for decision in decisions[:-1])
    last = decisions[-1]
    assert isinstance(last, Fail)
    assert last.reason == FailReason.ATTEMPTS_EXHAUSTED
    assert last.message == f"attempt {runs} of {runs} failed"


def test_the_delay_that_a_failure_asks_for_wins_over_the_policy_and_its_cap() -> None:
    failure = replace(TRANSIENT, retry_after=120)
    assert decide_failure(exponential(1000, 30_000, jitter=1.0), 1, failure, 0.9) == Retry(120_000)


def test_a_failure_may_ask_for_no_delay_and_for_a_fraction_of_a_second() -> None:
    assert decide_failure(RetryPolicy(), 1, replace(TRANSIENT, retry_after=0), 0.5) == Retry(0)
    assert decide_failure(RetryPolicy(), 1, replace(TRANSIENT, retry_after=0.0015), 0.5) == Retry(2)


def test_the_delay_that_a_failure_asks_for_does_not_make_it_retryable() -> None:
    assert isinstance(decide_failure(RetryPolicy(), 1, replace(PERMANENT, retry_after=1), 0.5), Fail)
    assert isinstance(decide_failure(RetryPolicy(), 3, replace(TRANSIENT, retry_after=1), 0.5), Fail)


@pytest.mark.parametrize("seconds", [-1, float("nan"), float("inf"), float("-inf")])
def test_an_impossible_wish_falls_back_to_the_policy_and_says_so(seconds: float) -> None:
    decision = decide_failure(RetryPolicy(), 2, replace(TRANSIENT, retry_after=seconds), 0.5)
    assert isinstance(decision, Retry)
    assert decision.delay_ms == 2000
    assert decision.warning is not None
    assert "retry_after" in decision.warning


def test_a_wish_of_centuries_is_cut_to_a_year() -> None:
    decision = decide_failure(RetryPolicy(), 1, replace(TRANSIENT, retry_after=1e15), 0.5)
    assert isinstance(decision, Retry)
    assert decision.delay_ms == 366 * 24 * 3600 * 1000
    assert decision.warning is not None


YEAR_MS = 366 * 24 * 3600 * 1000


def test_a_wish_of_a_second_more_than_a_year_is_cut_and_one_of_a_year_is_not() -> None:
    exactly, more = (replace(TRANSIENT, retry_after=YEAR_MS // 1000 + n) for n in (0, 1))

    assert decide_failure(RetryPolicy(), 1, exactly, 0.5) == Retry(YEAR_MS)
    cut = decide_failure(RetryPolicy(), 1, more, 0.5)
    assert isinstance(cut, Retry)
    assert cut.delay_ms == YEAR_MS
    assert cut.warning


@pytest.mark.parametrize("failures", [1024, 1025, 5000])
def test_the_delay_after_thousands_of_failures_is_the_cap(failures: int) -> None:
    assert delay_ms(exponential(1000, 30_000), failures) == 30_000


@pytest.mark.parametrize(("random", "delay"), [(0.0, 0), (0.25, 1000), (0.5, 2000), (0.999, 3996)])
def test_full_jitter_takes_any_part_of_the_delay_and_no_more(random: float, delay: int) -> None:
    assert delay_ms(RetryPolicy(backoff_base_ms=2000, jitter="full"), 2, random) == delay


# What cannot be in time is not waited for.


def reason(policy: RetryPolicy, times: RetryTimes, failure: Failure = TRANSIENT) -> FailReason | None:
    decision = decide_failure(policy, 1, failure, 0.5, times)
    return decision.reason if isinstance(decision, Fail) else None


@pytest.mark.parametrize(
    ("left_ms", "expected"), [(1001, None), (1000, "deadline_too_near"), (-5, "deadline_too_near")]
)
def test_a_retry_due_behind_the_deadline_fails_at_once(left_ms: int, expected: str | None) -> None:
    assert reason(RetryPolicy(backoff_base_ms=1000), RetryTimes(left_ms=left_ms)) == expected


def test_a_delay_that_the_failure_requests_must_be_in_time_too() -> None:
    away = replace(TRANSIENT, retry_after=7200.0)

    decision = decide_failure(RetryPolicy(), 1, away, 0.5, RetryTimes(left_ms=3_600_000))

    assert decision == Fail(
        FailReason.DEADLINE_TOO_NEAR,
        "the next attempt would begin in 7200s, and 3600s are left until the deadline of the task",
    )


@pytest.mark.parametrize(("ran_ms", "expected"), [(0, None), (59_000, None), (59_001, "max_elapsed")])
def test_no_attempt_begins_after_max_elapsed(ran_ms: int, expected: str | None) -> None:
    policy = RetryPolicy(max_attempts=FOREVER, max_elapsed_ms=60_000)

    assert reason(policy, RetryTimes(ran_ms=ran_ms)) == expected
