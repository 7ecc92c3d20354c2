"""Durations in text, as users write them."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasker.template.durations import duration_seconds, duration_text, parse_duration, readable_duration
from tasker.template.rates import rate_text


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("5m", 300), ("36h", 129_600), ("3d", 259_200), ("1h30m", 5400), ("2w", 1_209_600), ("250ms", 0.25),
     ("1.5h", 5400), ("1m500ms", 60.5), ("0s", 0), ("366d", 31_622_400)],
)  # fmt: skip
def test_a_duration_is_a_sum_of_units(text: str, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    "text", ["", "5", "m", "5 m", "-5m", "5m1h", "1e3s", "5M", "1h1h", "tomorrow", "367d", "9999999d"]
)
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected a duration"):
        parse_duration(text)


def test_a_number_without_a_unit_is_refused_with_the_likely_meaning() -> None:
    with pytest.raises(ValueError, match=r"got '90'; did you mean 90s\?"):
        parse_duration("90")


@pytest.mark.parametrize("value", [timedelta(minutes=5), 300, 300.0, "5m"])
def test_a_program_may_say_it_as_a_timedelta_seconds_or_text(value: timedelta | float | str) -> None:
    assert duration_seconds(value) == 300


@pytest.mark.parametrize("value", [True, None, -1, float("nan"), float("inf"), timedelta(days=-1), [5]])
def test_what_a_program_may_not_say(value: object) -> None:
    with pytest.raises(ValueError, match="expected"):
        duration_seconds(value)  # type: ignore[arg-type]


@given(st.integers(0, 366 * 86_400_000))
def test_the_text_of_a_duration_reads_as_the_same(milliseconds: int) -> None:
    assert parse_duration(duration_text(milliseconds / 1000)) == pytest.approx(milliseconds / 1000)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (1.5, "1500ms"), (90, "90s"), (5400, "90m"), (86_400, "1d"), (604_800, "7d")]
)
def test_a_duration_is_shown_in_its_largest_whole_unit(seconds: float, text: str) -> None:
    assert readable_duration(seconds) == text


@pytest.mark.parametrize(
    ("rate", "text"),
    [(2, "2/s"), (2.0, "2/s"), (0.5, "30/m"), (100 / 60, "100/m"), (7 / 3600, "7/h"), (0.001, "86.4/d")],
)
def test_a_rate_is_shown_as_a_template_has_it(rate: float, text: str) -> None:
    """Also a whole number, as JSON has it."""
    assert rate_text(rate) == text
