"""Keys of steps that wait, and the schemas of what such steps return."""

from __future__ import annotations

import re
from typing import Any, Final

from tasker.dataclasses import dataclass
from tasker.template.documents import DocumentReading, Path
from tasker.template.mapping import Key, Mapping
from tasker.template.schedules import Zone
from tasker.template.times import Duration, StartTime
from tasker.template.value_kinds import INVALID, Choice
from tasker.template.yaml.nodes import Node

TIME_OF_DAY = r"([01]\d|2[0-3]):[0-5]\d"
CALENDAR_WORDS = (
    *("day", "weekday", "month"),
    *("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
)


@dataclass(frozen=True)
class TimeOfDay:
    """Time of day, as `HH:MM`."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the time of day."""
        if isinstance(node.value, str) and re.fullmatch(TIME_OF_DAY, node.value):
            return node.value
        message = f"expected a time of day such as 09:00, got {node.text or 'another value'}"
        reading.report.add("T142", message, node.location, "write hours and minutes with two digits each: 09:00, 17:30")
        return INVALID

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{TIME_OF_DAY}$", "examples": ["09:00"]}


CALENDAR = Mapping(
    "`until`",
    (
        Key(
            "next",
            Choice(CALENDAR_WORDS),
            "The day: the next `day`, `weekday` (Monday to Friday), `month` (its first day) or named day of the week.",
            required=True,
        ),
        Key("at", TimeOfDay(), "The time of day, `09:00`.", required=True),
        Key("timezone", Zone(), "IANA time zone of `at`.", default="UTC"),
    ),
)


@dataclass(frozen=True)
class EndTime:
    """End of a wait: a time or the path of one, as for `not_before`, or a calendar word with time of day and zone."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the time, the path, or the calendar word."""
        if not isinstance(node.value, dict):
            return StartTime().read(node, path, reading)
        word = CALENDAR.read(node, path, reading)
        return {"timezone": "UTC", **word} if isinstance(word, dict) and {"next", "at"} <= word.keys() else INVALID

    def json_schema(self) -> dict[str, Any]:
        return {"anyOf": [StartTime().json_schema(), CALENDAR.json_schema()]}


WAIT_KEYS = (
    Key("for", Duration(), "How long a step with `type: wait` waits: `90s`, `36h`, `3d`."),
    Key(
        "until",
        EndTime(),
        "Until when a step with `type: wait` waits: a time with a zone, the path of one (`input.trip.starts_at`), or "
        "the next such day: `{next: monday, at: 09:00, timezone: Europe/Berlin}`.",
    ),
)
OF_WAITS: Final = frozenset(key.name for key in WAIT_KEYS)
"""Keys that only steps that wait have."""
