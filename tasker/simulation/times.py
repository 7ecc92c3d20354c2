"""Times in a task's data and calendar words, as the engine's SQL reads them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from tasker.simulation.steps import SimulatedStep


def start_time(
    place: Mapping[str, Any], values: Mapping[str, Any], steps: Mapping[str, SimulatedStep]
) -> datetime | str:
    """Return the time that `not_before` says, or the reason why it says none."""
    if "time" in place:
        return datetime.fromisoformat(place["time"])
    found, where = value_at(place, values, steps)
    if found is None:
        return f"{where} has no value"
    try:
        moment = datetime.fromisoformat(str(found))
    except ValueError:
        return f"{where} is no time with a zone: {found!r}"
    return moment if moment.tzinfo is not None else f"{where} is no time with a zone: {found!r}"


def value_at(
    place: Mapping[str, Any], values: Mapping[str, Any], steps: Mapping[str, SimulatedStep]
) -> tuple[Any, str]:
    """Return the value at a place of the data, None if there is none, and the place as text."""
    found: Any = values
    parts, where = place.get("input", place.get("path", ())), "input"
    if "step" in place:
        step, where = steps.get(place["step"]), f"steps.{place['step']}"
        found = None if step is None else step.result
    for part in parts:
        where += f"[{part}]" if isinstance(part, int) else f".{part}"
        try:
            found = found[part]
        except (KeyError, IndexError, TypeError):
            return None, where
    return found, where


def next_calendar_time(word: Mapping[str, Any], after: datetime) -> datetime:
    """Return the first time after `after` that a calendar word names, as `tasker.next_calendar_time` does."""
    zone = ZoneInfo(word["timezone"])
    at, day = time.fromisoformat(word["at"]), after.astimezone(zone).date()
    while True:
        moment = datetime.combine(day, at, zone)
        if moment.astimezone(UTC) > after and _is_named(word["next"], moment):
            return moment
        day += timedelta(days=1)


def _is_named(word: str, day: datetime) -> bool:
    match word:
        case "day":
            return True
        case "weekday":
            return day.isoweekday() <= 5
        case "month":
            return day.day == 1
    return day.strftime("%A").lower() == word
