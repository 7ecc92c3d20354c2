"""Words of an explanation from the database's values: times, names, pauses, commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, tzinfo
from shlex import quote
from typing import Any

Values = Mapping[str, Any]

MOST_COUNTED = 10_000
"""Limit up to which the database counts the steps ahead of a held one."""
LONGEST_MESSAGE = 200
TIMES = ("since", "due_at", "started_at", "deadline_at", "lease_until", "paused_at", "hinted_at", "refused_since", "at")
LISTS = ("parents", "failed", "workers", "refused_by", "handlers")


def words_of(values: Values, now: datetime, zone: tzinfo | None) -> dict[str, str]:
    """Return all words that the values provide. Times are in `zone`, or in the local one if it is None."""
    words = {name: _text(value) for name, value in values.items() if isinstance(value, str | int | float)}
    words |= {name: moment(str(values[name]), now, zone) for name in TIMES if values.get(name)}
    words |= {name: listed(values[name]) for name in LISTS if values.get(name)}
    if values.get("parents") and values.get("left"):
        words["parents"] = listed(values["parents"], values["left"])
    elif "left" in values:
        words["parents"] = _count(values["left"], "step")
    if "ahead" in values:
        words["ahead"] = _ahead(values["ahead"])
    for name, noun in (("enqueued", "step"), ("free", "free slot"), ("draining", "worker")):
        if name in values:
            words[name] = _count(values[name], noun) if values[name] else ""
    words["error"] = error_text(values.get("error_type"), values.get("message"))
    return words | _pause_words(values.get("pause"), now, zone)


def moment(text: str, now: datetime, zone: tzinfo | None) -> str:
    """Return the time of day, with the date if it is not the day of `now`."""
    then, today = datetime.fromisoformat(text).astimezone(zone), now.astimezone(zone)
    return then.strftime("%H:%M:%S" if then.date() == today.date() else "%Y-%m-%d %H:%M:%S")


def listed(names: Sequence[str], count: int | None = None) -> str:
    """Return the names, and how many more there are of `count`."""
    more = (count or 0) - len(names)
    return ", ".join(names) + (f" and {more:,} more" if more > 0 else "")


def error_text(error_type: str | None, message: str | None) -> str:
    """Return type and message of a failure on one line."""
    flat = " ".join((message or "").split())
    short = flat if len(flat) <= LONGEST_MESSAGE else f"{flat[: LONGEST_MESSAGE - 1]}…"
    return ": ".join(filter(None, (error_type, short)))


def paused_target(pause: Values) -> tuple[str, str]:
    """Return the kind of the paused target, and its name as the commands accept it."""
    kind = next(each for each in ("queue", "task", "step", "template", "namespace") if pause.get(each))
    if kind in ("queue", "task"):
        return kind, str(pause[kind])
    return kind, "/".join(str(pause[each]) for each in ("namespace", "template", "step") if pause.get(each))


def resume_command(pause: Values) -> str:
    """Return the command that ends a pause."""
    kind, name = paused_target(pause)
    return f"tasker resume {name}" if kind == "namespace" else f"tasker resume --{kind} {name}"


def again_command(task_uuid: str, steps: Sequence[str], count: int) -> str:
    """Return the rest of the `tasker task` command that runs these failed steps again."""
    return f"step reset {task_uuid} {quote(steps[0])}" if count == 1 else f"retry {task_uuid}"


def _pause_words(pause: Values | None, now: datetime, zone: tzinfo | None) -> dict[str, str]:
    if not pause:
        return {}
    return {
        "actor": pause["actor"] or "somebody",
        "because": error_text(None, pause["reason"]),
        "target": " ".join(paused_target(pause)),
        "paused_at": moment(pause["paused_at"], now, zone),
        "resume": resume_command(pause),
    }


def _ahead(number: int) -> str:
    if number == 0:
        return "only the queue"
    more = " or more" if number >= MOST_COUNTED else ""
    return f"{number:,}{more} more urgent {'step' if number == 1 else 'steps'}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _text(value: str | float) -> str:
    return value if isinstance(value, str) else f"{value:,}"
