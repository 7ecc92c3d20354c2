"""Times of a submission: `run_at`, `delay`, `expires_in` and `deadline`, checked, for the engine and for messages."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from tasker.errors import UsageError
from tasker.template.durations import duration_seconds, duration_text

Moment = datetime | str | None
Delay = timedelta | float | str | None
Deadline = datetime | timedelta | float | str | None

TIMES = ("run_at", "delay", "expires_in", "deadline")
"""Options of a submission that are times, as `start_texts` takes them."""
DATE = re.compile(r"\d{4}-\d\d-\d\d")
TIME_EXPECTED = "a time with a zone, such as 2026-01-31T18:00:00Z"


def start_item(run_at: Moment, delay: Delay, debounce: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the start of a task as the engine takes it; {} if it begins at once. Raises `UsageError`.

    The template's `debounce` sets the start of its tasks.
    """
    moment, seconds = _checked(run_at, delay)
    if debounce is not None:
        if moment is not None or seconds is not None:
            name = "run_at" if seconds is None else "delay"
            raise UsageError(f"{name}: the template has `debounce`, which sets the start", hint=f"leave {name} out")
        seconds = debounce["wait"]
    if moment is not None:
        return {"run_at": moment.isoformat()}
    return {} if seconds is None else {"delay_ms": round(seconds * 1000)}


def expiry_item(expires_in: Delay, by_template: float | None) -> dict[str, Any]:
    """Return the expiry of a task as the engine takes it; {} if it never expires. Raises `UsageError`."""
    seconds = _seconds("expires_in", expires_in, "without it the task does not expire")
    seconds = by_template if seconds is None else seconds
    return {} if seconds is None else {"expires_ms": round(seconds * 1000)}


def deadline_item(deadline: Deadline, by_template: float | None) -> dict[str, Any]:
    """Return the deadline of a task as the engine takes it; {} if it has none. Raises `UsageError`."""
    limit = _deadline(deadline)
    limit = by_template if limit is None else limit
    if isinstance(limit, datetime):
        return {"deadline": limit.isoformat()}
    return {} if limit is None else {"deadline_ms": round(limit * 1000)}


def start_texts(
    run_at: Moment = None, delay: Delay = None, expires_in: Delay = None, deadline: Deadline = None
) -> dict[str, str | None]:
    """Return the values as texts, for messages and requests. Raises `UsageError`."""
    moment, seconds = _checked(run_at, delay)
    expiry = _seconds("expires_in", expires_in, "without it the task does not expire")
    limit = _deadline(deadline)
    return {
        "deadline": _deadline_text(limit),
        "run_at": None if moment is None else moment.isoformat(),
        "delay": None if seconds is None else duration_text(seconds),
        "expires_in": None if expiry is None else duration_text(expiry),
    }


def _deadline_text(limit: datetime | float | None) -> str | None:
    if isinstance(limit, datetime):
        return limit.isoformat()
    return None if limit is None else duration_text(limit)


def parse_time(text: str) -> datetime:
    """Return the time of a text. Raises `ValueError` if it has no zone or is no time."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"expected {TIME_EXPECTED}, got {text[:40]!r}") from None
    return with_zone(moment)


def with_zone(moment: datetime) -> datetime:
    """Return the time. Raises `ValueError` if it has no zone: it would mean another moment on each machine."""
    if moment.utcoffset() is None:
        raise ValueError(f"expected {TIME_EXPECTED}, got {moment.isoformat()}, which has no zone")
    return moment


def _deadline(value: Deadline) -> datetime | float | None:
    """Return a time, or seconds from the start of the task. A text that begins with a date is a time."""
    try:
        if isinstance(value, datetime):
            return with_zone(value)
        if isinstance(value, str) and DATE.match(value):
            return parse_time(value)
        seconds = None if value is None else duration_seconds(value)
    except ValueError as error:
        raise UsageError(f"deadline: {error}", hint=f"a deadline is a duration or {TIME_EXPECTED}") from None
    if seconds == 0:
        raise UsageError("deadline: expected more than 0s", hint="without it the task has no deadline")
    return seconds


def _seconds(name: str, value: Delay, hint: str) -> float | None:
    try:
        return None if value is None else duration_seconds(value)
    except ValueError as error:
        raise UsageError(f"{name}: {error}", hint=hint) from None


def _checked(run_at: Moment, delay: Delay) -> tuple[datetime | None, float | None]:
    if run_at is not None and delay is not None:
        raise UsageError("run_at and delay exclude each other", hint="a task begins at a time, or after a delay")
    try:
        if isinstance(run_at, str):
            return parse_time(run_at), None
        if run_at is not None and not isinstance(run_at, datetime):
            raise ValueError(f"expected {TIME_EXPECTED}, got {run_at!r:.40}")
        return None if run_at is None else with_zone(run_at), None if delay is None else duration_seconds(delay)
    except ValueError as error:
        name = "delay" if run_at is None else "run_at"
        raise UsageError(f"{name}: {error}", hint="without it the task begins at once") from None
