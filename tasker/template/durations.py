"""Durations in text: `90s`, `5m`, `36h`, `3d`, `1h30m`."""

from __future__ import annotations

import re
from datetime import timedelta

from tasker.template.names import MAX_SECONDS

UNITS = {"w": 604_800.0, "d": 86_400.0, "h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
_NUMBER = r"\d{1,12}(?:\.\d{1,6})?"
DURATION = "".join(rf"(?:{_NUMBER}{unit})?" for unit in ("w", "d", "h", "m", "s", "ms"))
"""Regular expression of a duration, the largest unit first; it also matches the empty text."""
EXPECTED = "a duration such as 90s, 5m, 36h, 3d or 1h30m"
_PART = re.compile(rf"({_NUMBER})(ms|[wdhms])")


def parse_duration(text: str) -> float:
    """Return the seconds of a duration. Raises `ValueError` if the text is none, or longer than a year."""
    if not text or not re.fullmatch(DURATION, text):
        number = re.fullmatch(r"\d+(\.\d+)?", text)
        raise ValueError(f"expected {EXPECTED}, got {text[:40]!r}{f'; did you mean {text}s?' if number else ''}")
    return checked_seconds(sum(float(number) * UNITS[unit] for number, unit in _PART.findall(text)))


def duration_seconds(value: timedelta | float | str) -> float:
    """Return the seconds of a duration from a program, where a number is seconds. Raises `ValueError`."""
    if isinstance(value, timedelta):
        return checked_seconds(value.total_seconds())
    if isinstance(value, str):
        return parse_duration(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected {EXPECTED}, a timedelta or seconds, got {value!r:.40}")
    return checked_seconds(float(value))


def checked_seconds(seconds: float) -> float:
    """Return the seconds. Raises `ValueError` if they are negative, not a number, or more than a year."""
    if not 0 <= seconds <= MAX_SECONDS:
        raise ValueError(f"expected a duration from 0s to {MAX_SECONDS // 86_400}d, got {seconds:g}s")
    return seconds


def duration_text(seconds: float) -> str:
    """Return the duration in text, exact to the millisecond."""
    whole = round(seconds * 1000)
    return f"{whole}ms" if whole % 1000 else f"{whole // 1000}s"


def readable_duration(seconds: float) -> str:
    """Return the duration in its largest whole unit, for readers: `2d`, `90m`."""
    whole = round(seconds)
    unit = next((unit for unit in "dhm" if whole and whole == seconds and whole % UNITS[unit] == 0), "")
    return f"{whole // int(UNITS[unit])}{unit}" if unit else duration_text(seconds)
