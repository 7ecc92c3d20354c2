"""Times in a task's data and calendar words, as the engine's SQL reads them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from tasker.handlers.claims import Failure
from tasker.simulation.steps import AttemptOutcome, SimulatedStep
from tasker.template.plan import StepPlan

if TYPE_CHECKING:
    from tasker.simulation.run import SimulatedTask


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


def start_of(step: StepPlan, task: SimulatedTask) -> int | Failure:
    """Return the time before which a ready step does not start, or why it never does."""
    if step.delay_seconds is not None:
        begins = task.now + round(step.delay_seconds * 1000)
    elif step.not_before is not None:
        moment = start_time(step.not_before, task.values, task.steps)
        if isinstance(moment, str):
            return Failure(moment, "not_a_time", retryable=False)
        begins = round((moment - task.at) / timedelta(milliseconds=1))
    else:
        return task.now
    if (left := task.left_ms) is not None and begins - task.now >= left:
        return Failure("it would start after the deadline of the task", "deadline_too_near", retryable=False)
    return begins


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


def wait_ends(
    wait: Mapping[str, Any], began: datetime, values: Mapping[str, Any], steps: Mapping[str, SimulatedStep]
) -> AttemptOutcome:
    """Return when a wait ends that began at a time, and what its step then comes to."""
    if (seconds := wait.get("for_seconds")) is not None:
        ends: datetime | str = began + timedelta(seconds=seconds)
    elif "next" in wait["until"]:
        ends = next_calendar_time(wait["until"], began)
    else:
        ends = start_time(wait["until"], values, steps)
    if isinstance(ends, str):
        return AttemptOutcome(Failure(ends, "not_a_time", retryable=False))
    return AttemptOutcome(
        {"waited_until": ends.astimezone(UTC).isoformat()}, round((ends - began) / timedelta(milliseconds=1))
    )
