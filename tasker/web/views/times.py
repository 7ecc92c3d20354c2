"""Moments for people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from tasker.services.wording import duration

LONG_AGO_SECONDS = 172_800
"""Beyond this a date says more."""


def moment(value: datetime | str) -> datetime:
    """A moment in UTC, from one or its ISO 8601 text."""
    found = datetime.fromisoformat(value) if isinstance(value, str) else value
    return found.astimezone(UTC)


def iso(value: datetime | str) -> str:
    """For machines."""
    return moment(value).isoformat()


def utc(value: datetime | str | None) -> str:
    """Date and time to the second, UTC."""
    return "" if value is None else f"{moment(value):%Y-%m-%d %H:%M:%S} UTC"


def clock(value: datetime | str) -> str:
    """The time of day to the millisecond, UTC."""
    return f"{moment(value):%H:%M:%S.%f}"[:-3]


def lasted(span: timedelta) -> str:
    """How long something took."""
    return duration(span.total_seconds() * 1000)


def ago(value: datetime | str, now: datetime | None = None) -> str:
    """`7 s ago`, `in 3 m 05 s`; a date where it is long ago."""
    seconds = ((now or datetime.now(UTC)) - moment(value)).total_seconds()
    if abs(seconds) >= LONG_AGO_SECONDS:
        return f"{moment(value):%Y-%m-%d %H:%M}"
    if abs(seconds) < 1:
        return "now"
    text = duration(1000 * round(abs(seconds)))
    text = text.replace(".0 s", " s")
    return f"{text} ago" if seconds > 0 else f"in {text}"
