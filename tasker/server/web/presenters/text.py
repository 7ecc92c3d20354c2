"""Values and moments as text."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from tasker.services.wording import duration


def pretty(value: object) -> str:
    """Return JSON on several lines."""
    return json.dumps(value, ensure_ascii=False, indent=2, default=str)


def compact(value: object) -> str:
    """Return JSON on one line."""
    return json.dumps(value, ensure_ascii=False, default=str)


LONG_AGO_SECONDS = 172_800
"""Age beyond which a date is shown."""


def moment(value: datetime | str) -> datetime:
    """Return the time in UTC; accepts a `datetime` or ISO 8601 text."""
    timestamp = datetime.fromisoformat(value) if isinstance(value, str) else value
    return timestamp.astimezone(UTC)


def iso(value: datetime | str) -> str:
    """Return the time in ISO 8601 format, in UTC."""
    return moment(value).isoformat()


def utc(value: datetime | str | None) -> str:
    """Return date and time to the second, in UTC."""
    return "" if value is None else f"{moment(value):%Y-%m-%d %H:%M:%S} UTC"


def clock(value: datetime | str) -> str:
    """Return the time of day to the millisecond, in UTC."""
    return f"{moment(value):%H:%M:%S.%f}"[:-3]


def lasted(span: timedelta) -> str:
    """Return a duration as text."""
    return duration(span.total_seconds() * 1000)


def ago(value: datetime | str, now: datetime | None = None) -> str:
    """Return a relative time such as `7 s ago` or `in 3 m 05 s`; a date if it is far from now."""
    seconds = ((now or datetime.now(UTC)) - moment(value)).total_seconds()
    if abs(seconds) >= LONG_AGO_SECONDS:
        return f"{moment(value):%Y-%m-%d %H:%M}"
    if abs(seconds) < 1:
        return "now"
    text = duration(1000 * round(abs(seconds)))
    text = text.replace(".0 s", " s")
    return f"{text} ago" if seconds > 0 else f"in {text}"


def titled(name: str) -> str:
    """Return a name as a label: `cost_center` is `Cost center`."""
    words = name.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:]


def is_nested(value: object) -> bool:
    """Return whether a list has lists or objects."""
    return isinstance(value, list) and any(isinstance(item, list | dict) for item in value)


def worded(value: object) -> str:
    """Return a plain value for readers: yes and no for booleans, also as JSON."""
    words = {"true": "Yes", "false": "No", "null": "-"}
    text = value if isinstance(value, str) else compact(value)
    return words.get(text, text)
