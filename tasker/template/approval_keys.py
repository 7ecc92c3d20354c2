"""Keys of steps that wait for the decision of persons, and the schema of what such steps return."""

from __future__ import annotations

import re
from collections.abc import Mapping as Values
from typing import Any, Final

from tasker.dataclasses import dataclass
from tasker.template.documents import DocumentReading, Path
from tasker.template.mapping import Key, Mapping, SchemaKey
from tasker.template.names import MOST_SUBJECT
from tasker.template.times import DataPlace, Duration
from tasker.template.value_kinds import INVALID, Choice, ListOf, Number, wrong_type
from tasker.template.yaml.nodes import Node

MOST_VOTES: Final = 100
MOST_REMINDERS: Final = 20
PERMISSION = r"approvals:[a-z][a-z0-9_]*"
_PLACE = re.compile(r"\$\{(?P<path>[^{}]+)\}")


@dataclass(frozen=True)
class Subject:
    """Name of a person as the server knows its callers, or the place of one or several names: `${input.manager}`."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the name as text, or the place as `{input}` or `{step, path}`."""
        if not isinstance(node.value, str):
            return wrong_type("the name of a person", node, reading)
        if place := _PLACE.fullmatch(node.value.strip()):
            return DataPlace().read(Node(place["path"].strip(), node.location, node.text), path, reading)
        if not 1 <= len(node.value.strip()) <= MOST_SUBJECT or "${" in node.value:
            message = f"expected a name of at most {MOST_SUBJECT} characters, or the path of one"
            reading.report.add("T192", message, node.location, "such as ann@example.com, or ${input.manager}")
            return INVALID
        return node.value.strip()

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "minLength": 1, "examples": ["ann@example.com", "${input.manager}"]}


@dataclass(frozen=True)
class NamedPermission:
    """Permission of persons that templates name: `approvals:NAME`."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the permission."""
        if isinstance(node.value, str) and re.fullmatch(PERMISSION, node.value):
            return node.value
        message = f"expected a permission such as approvals:finance, got {node.text or 'another value'}"
        hint = "write `approvals:` and a name of your own; grant it in the tokens or API keys of those who decide"
        reading.report.add("T193", message, node.location, hint)
        return INVALID

    def json_schema(self) -> dict[str, Any]:
        return {"type": "string", "pattern": f"^{PERMISSION}$", "examples": ["approvals:finance"]}


_PERSONS = (
    Key("subjects", ListOf(Subject(), at_least_one=True), "Names of persons, or paths of them: `${input.manager}`."),
    Key("permissions", ListOf(NamedPermission(), at_least_one=True), "Permissions of which a person has one."),
)
FROM = Mapping("`from`", _PERSONS, either=("subjects", "permissions"))
TO = Mapping("`to`", _PERSONS, either=("subjects", "permissions"))
REMINDERS = Mapping(
    "`reminders`",
    (
        Key("every", Duration(), "How long after the request, and after each reminder, the next one is sent.", True),
        Key("count", Number(whole=True, minimum=1, maximum=MOST_REMINDERS), "How many there are.", default=3),
    ),
    shorthand="every",
)
ESCALATE = Mapping(
    "`escalate`",
    (
        Key("after", Duration(), "How long after the request other persons may decide, too.", True),
        Key("to", TO, "These persons.", True),
    ),
)

APPROVAL_KEYS: Final = (
    Key("form", SchemaKey(), "JSON Schema of what a person fills in when deciding: an object with plain fields."),
    Key("from", FROM, "Persons who may decide; without it, everybody with the permission `approvals:decide`."),
    Key(
        "quorum",
        Number(whole=True, minimum=1, maximum=MOST_VOTES),
        "How many different persons have to approve.",
        default=1,
    ),
    Key(
        "reject",
        Choice(("first", "quorum")),
        "`quorum`: a rejection needs as many persons as an approval; `first`: one is enough.",
        default="first",
    ),
    Key(
        "on_reject",
        Choice(("complete", "fail")),
        "`complete`: the step ends with `approved: false`; `fail`: a rejection is a failure, as a timeout.",
        default="complete",
    ),
    Key("reminders", REMINDERS, "Events `approval.reminder` while nobody decides: `{every: 1d, count: 3}`."),
    Key("escalate", ESCALATE, "Further persons after a time, with the event `approval.escalated`."),
)

_TEXT = {"type": "string"}


def result_of_approval(form: Any) -> dict[str, Any]:
    """Return the JSON Schema of the result of an approval with this form."""
    filled = form if isinstance(form, Values) and "$ref" not in str(form) else {}
    vote = {
        "type": "object",
        "required": ["by", "decision", "form", "comment", "via", "at"],
        "properties": {**dict.fromkeys(("by", "decision", "comment", "via", "at"), _TEXT), "form": filled},
    }
    return {
        "type": "object",
        "required": ["approved", "by", "form", "comment", "votes"],
        "properties": {
            "approved": {"type": "boolean"},
            "by": _TEXT,
            "form": filled,
            "comment": _TEXT,
            "votes": {"type": "array", "items": vote},
        },
    }


def approval_of(values: Values[str, Any]) -> dict[str, Any]:
    """Return the part of the plan that says who decides, from the keys of the step."""
    reminders, escalate = values.get("reminders", {}), values.get("escalate", {})
    persons, further = values.get("from", {}), escalate.get("to", {})
    return {
        "form": values.get("form"),
        "subjects": persons.get("subjects"),
        "permissions": persons.get("permissions"),
        "quorum": values.get("quorum", 1),
        "reject": values.get("reject", "first"),
        "on_reject": values.get("on_reject", "complete"),
        "remind_seconds": reminders.get("every"),
        "reminders": reminders.get("count", 3) if reminders else 0,
        "escalate_seconds": escalate.get("after"),
        "escalate_subjects": further.get("subjects"),
        "escalate_permissions": further.get("permissions"),
    }
