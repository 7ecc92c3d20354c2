"""`--since`: a span of time before now, or a moment."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import click
import pytest

from tasker.cli.commands.task_watch import moment

NOW = datetime(2026, 3, 10, 12, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "before"),
    [
        ("90s", timedelta(seconds=90)),
        ("15m", timedelta(minutes=15)),
        ("2h", timedelta(hours=2)),
        ("1.5h", timedelta(minutes=90)),
        ("7d", timedelta(days=7)),
        ("2w", timedelta(days=14)),
        (" 2 h ", timedelta(hours=2)),
    ],
)
def test_a_span_counts_back_from_now(text: str, before: timedelta) -> None:
    assert moment(text, NOW) == NOW - before


def test_a_moment_is_taken_in_its_zone_or_in_the_user_s() -> None:
    assert moment("2026-03-10T08:00:00+02:00", NOW) == datetime(2026, 3, 10, 6, tzinfo=UTC)
    assert moment("2026-03-10 08:00", NOW) == datetime(2026, 3, 10, 8).astimezone()
    assert moment("2026-03-09", NOW) == datetime(2026, 3, 9).astimezone()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("yesterday", "is not a duration or a date"),
        ("2", "is not a duration or a date; did you mean 2h?"),
        ("2hours", "is not a duration or a date; did you mean 2h?"),
        ("-2h", "is not a duration or a date; did you mean 2h?"),
        ("0s", "is in the future or now"),
        ("2027-01-01", "is in the future or now"),
        ("99999999999d", "is too far in the past"),
        ("2026-13-40", "is not a duration or a date"),
        ("", "is not a duration or a date"),
    ],
)
def test_what_is_neither_is_refused_with_what_would_be_right(text: str, said: str) -> None:
    with pytest.raises(click.BadParameter) as caught:
        moment(text, NOW)

    assert said in caught.value.message
    assert "expected 90s, 15m, 2h, 7d or 2w, or a date" in caught.value.message
