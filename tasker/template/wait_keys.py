"""Keys of steps that wait, and the schemas of what such steps return."""

from __future__ import annotations

import re
from collections.abc import Mapping as Values
from dataclasses import replace
from typing import Any, Final

from tasker.dataclasses import dataclass
from tasker.template.approval_keys import APPROVAL_KEYS, result_of_approval
from tasker.template.child_keys import result_of_children
from tasker.template.documents import DocumentReading, Path
from tasker.template.failure_keys import OnFailure
from tasker.template.failure_words import FAIL_TASK
from tasker.template.mapping import Key, Mapping, SchemaKey
from tasker.template.names import MAX_NAME, NAME, NAME_RULE
from tasker.template.schedules import Zone
from tasker.template.times import DataPlace, Duration, StartTime
from tasker.template.value_kinds import INVALID, Choice, ListOf, Number, Text
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


NEVER = "never"


@dataclass(frozen=True)
class Timeout:
    """Duration as seconds, or `never`."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the duration; `never` stays a word."""
        return NEVER if node.value == NEVER else Duration().read(node, path, reading)

    def json_schema(self) -> dict[str, Any]:
        return {"anyOf": [Duration().json_schema(), {"const": NEVER}]}


EVENT_NAME = Text(NAME, NAME_RULE, max_length=MAX_NAME)
OF_ONE_EVENT = (
    Key("event", EVENT_NAME, "Name of the event that a step with `type: wait_for_event` waits for."),
    Key(
        "key",
        DataPlace(),
        "Path of the event's key: `input.order.id`, `steps.pay.session`; without it, events without a key.",
    ),
    Key("schema", SchemaKey(), "JSON Schema of the payload; an event whose payload does not fit is left to others."),
)
AWAITED_EVENT = Mapping("an event of `events`", OF_ONE_EVENT)
MOST_COLLECTED = 1000

_KEYS = (
    Key("for", Duration(), "How long a step with `type: wait` waits: `90s`, `36h`, `3d`."),
    Key(
        "until",
        EndTime(),
        "Until when a step with `type: wait` waits: a time with a zone, the path of one (`input.trip.starts_at`), or "
        "the next such day: `{next: monday, at: 09:00, timezone: Europe/Berlin}`.",
    ),
    *OF_ONE_EVENT,
    Key("events", ListOf(AWAITED_EVENT, at_least_one=True), "Several events, of which the first one ends the wait."),
    Key("timeout", Timeout(), "How long the step waits for an event or a person: `2h`, `3d`, or `never`."),
    Key(
        "on_timeout",
        OnFailure(),
        "What it means for the task that nothing came in time, in the words of `on_failure`.",
        default=FAIL_TASK,
    ),
    Key("take", Choice(("first", "all")), "`all` collects every event until the `timeout`.", default="first"),
    Key(
        "count",
        Number(whole=True, minimum=1, maximum=MOST_COLLECTED),
        "How many events the step collects before it ends.",
        default=1,
    ),
    Key(
        "since",
        Choice(("task", "any")),
        "Whether events count that were sent before the task was created, and are still kept.",
        default="task",
    ),
)
KINDS_OF_KEYS: Final[Values[str, tuple[str, ...]]] = {
    **{key.name: ("event",) for key in _KEYS},
    **dict.fromkeys(("for", "until"), ("time",)),
    **dict.fromkeys(("timeout", "on_timeout"), ("event", "person")),
    **{key.name: ("person",) for key in APPROVAL_KEYS},
}
"""For each key of waits, that for which the steps wait that have it."""
TYPES: Final = {"time": "wait", "event": "wait_for_event", "person": "approval"}
"""Type of step by that for which it waits."""
WAIT_KEYS = tuple(
    replace(key, only_with=tuple(TYPES[kind] for kind in KINDS_OF_KEYS[key.name])) for key in (*_KEYS, *APPROVAL_KEYS)
)


_TEXT = {"type": "string"}


def result_of_wait(waits: str, values: Values[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of the result of a step that waits for that, from its keys."""
    if waits == "task":
        return result_of_children(values)
    if waits == "time":
        return {"type": "object", "required": ["waited_until"], "properties": {"waited_until": _TEXT}}
    if waits == "person":
        return result_of_approval(values.get("form"))
    events = [event for event in values.get("events", ()) if isinstance(event, dict)]
    schema = events[0].get("schema") if len(events) == 1 else values.get("schema")
    one: dict[str, Any] = {
        "type": "object",
        "required": ["event", "key", "payload", "event_uuid", "sent_at"],
        "properties": {
            **dict.fromkeys(("event", "key", "event_uuid", "sent_at"), _TEXT),
            "payload": schema if isinstance(schema, dict) and "$ref" not in str(schema) else {},
        },
    }
    if values.get("take") == "all" or values.get("count", 1) != 1:
        return {"type": "object", "required": ["events"], "properties": {"events": {"type": "array", "items": one}}}
    return one
