"""Pauses between attempts: they double up to their bound, and differ between processes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tasker.clock import BackoffPolicy, between, jittered

CHANCES = st.floats(0, 1)


def test_each_pause_is_twice_the_one_before_up_to_the_longest() -> None:
    backoff = BackoffPolicy(0.5, 10.0)

    assert [backoff.pause(failures) for failures in range(7)] == [0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 10.0]


@given(st.integers(0, 10**9), CHANCES)
def test_no_pause_leaves_its_bounds_however_many_failures_there_were(failures: int, chance: float) -> None:
    backoff = BackoffPolicy(0.25, 5.0, spread=0.5)

    assert 0.125 <= backoff.pause(failures, chance) <= 7.5
    assert backoff.pause(0, chance) <= 0.375


@given(st.floats(0.001, 3600), CHANCES)
def test_jitter_takes_away_as_much_as_it_adds(seconds: float, chance: float) -> None:
    low, high = jittered(seconds, 0.25, 0.0), jittered(seconds, 0.25, 1.0)

    assert (low, jittered(seconds, 0.25, 0.5), high) == (seconds * 0.75, seconds, seconds * 1.25)
    assert low <= jittered(seconds, 0.25, chance) <= high


def test_pauses_go_on_from_where_they_are_when_their_bound_has_changed() -> None:
    patient, hasty = BackoffPolicy(0.02, 10.0), BackoffPolicy(0.02, 0.05)

    assert [hasty.after(4.0), patient.after(hasty.after(4.0)), patient.after(8.0)] == [0.05, 0.1, 10.0]


def test_a_chance_chooses_between_two_bounds() -> None:
    assert [between(1.25, 1.5, chance) for chance in (0.0, 0.5, 1.0)] == [1.25, 1.375, 1.5]
