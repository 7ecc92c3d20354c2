"""Depths become levels, refusals and waiting times."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasker.resilience.pressure import (
    LONGEST_SECONDS,
    BufferLevel,
    DrainRate,
    Level,
    buffer_level,
    depth_level,
    retry_after,
)
from tasker.settings.queues import DepthThresholds

LIMITS = DepthThresholds(critical_threshold=100, overflow_threshold=200)


@pytest.mark.parametrize(
    ("depth", "level"),
    [(0, "normal"), (49, "normal"), (50, "warning"), (99, "warning"), (100, "critical"), (200, "overflow")],
)
def test_a_depth_has_a_level(depth: int, level: str) -> None:
    assert depth_level(LIMITS, depth) is Level(level)


@pytest.mark.parametrize(
    ("depth", "rate", "seconds"),
    [
        (99, 10.0, None),
        (100, 10.0, 5),
        (150, 10.0, 10),
        (150, 1000.0, 1),
        (150, 0.01, LONGEST_SECONDS),
        (150, None, 30),
        (150, 0.0, 30),
    ],
)
def test_a_refusal_names_the_time_until_half_of_the_limit_is_free(
    depth: int, rate: float | None, seconds: int | None
) -> None:
    assert retry_after(LIMITS, depth, rate) == seconds


@pytest.mark.parametrize(
    ("depth", "priority", "seconds"), [(199, 1, None), (200, 1, 10), (200, 0, 15), (100, -1, 5), (100, 0, 5)]
)
def test_tasks_of_positive_priority_are_refused_last(depth: int, priority: int, seconds: int | None) -> None:
    assert retry_after(LIMITS, depth, 10.0, priority) == seconds
    assert retry_after(DepthThresholds(critical_threshold=100, overflow_threshold=1), 99, 10.0, priority) is None


@given(st.integers(0, 10_000), st.none() | st.floats(0, 1e6))
def test_new_work_is_refused_exactly_from_the_critical_level_on(depth: int, rate: float | None) -> None:
    refused = retry_after(LIMITS, depth, rate) is not None

    assert refused == (depth_level(LIMITS, depth) in (Level.CRITICAL, Level.OVERFLOW))


def test_the_rate_is_what_left_over_the_time_between_readings() -> None:
    rate = DrainRate()
    rate.read(0.0, 1000)
    assert rate.per_second is None
    rate.read(10.0, 1500)

    assert rate.per_second == 50


def test_readings_in_quick_succession_do_not_distort_the_rate() -> None:
    rate = DrainRate()
    for now, taken in [(0.0, 0), (0.1, 90), (0.2, 95), (2.0, 100)]:
        rate.read(now, taken)

    assert rate.per_second == 50


def test_the_rate_forgets_what_is_older_than_its_window() -> None:
    rate = DrainRate(window=60)
    for now, taken in [(0.0, 0), (10.0, 10_000), (70.0, 10_600), (130.0, 11_200)]:
        rate.read(now, taken)

    assert rate.per_second == 10


def test_a_buffer_warns_at_its_mark_and_again_only_after_it_has_emptied_by_half() -> None:
    fill = BufferLevel.NORMAL
    seen = []
    for count in (0, 79, 80, 79, 100, 99, 120, 41, 40, 79, 80, 0):
        fill = buffer_level(100, 0.8, count, fill)
        seen.append(fill)

    normal, high, full = BufferLevel.NORMAL, BufferLevel.HIGH, BufferLevel.FULL
    assert seen == [normal, normal, high, high, full, high, full, high, normal, normal, high, normal]


def test_an_empty_buffer_is_normal_wherever_its_mark_is() -> None:
    assert buffer_level(10, 0.0, 0, BufferLevel.HIGH) is BufferLevel.NORMAL
    assert buffer_level(10, 1.0, 9, BufferLevel.NORMAL) is BufferLevel.NORMAL
