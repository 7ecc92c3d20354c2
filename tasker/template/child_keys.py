"""Keys of steps that start child tasks, and the schema of what such a step returns."""

from __future__ import annotations

import re
from collections.abc import Mapping as Values
from dataclasses import replace
from typing import Any, Final

from tasker.dataclasses import dataclass
from tasker.template.documents import DocumentReading, Path
from tasker.template.mapping import Key
from tasker.template.names import MAX_COUNT, MAX_NAME, NAME, NAME_RULE, VERSION, VERSION_RULE
from tasker.template.value_kinds import INVALID, Choice, Number, Text, Version
from tasker.template.yaml.nodes import Node

PERCENT = r"(100|[1-9]?\d)(\.\d{1,3})?%"
TOLERATED_EXPECTED = "a number of children such as 3, or a share such as 5%"
MAX_PARALLEL = 100
"""Children that are open at the same time, if the step does not say."""


@dataclass(frozen=True)
class Tolerance:
    """Number of children, or a share of them as a percentage."""

    def read(self, node: Node, path: Path, reading: DocumentReading) -> Any:
        """Read the number, or the text of the percentage."""
        value = node.value
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_COUNT:
            return value
        if isinstance(value, str) and re.fullmatch(PERCENT, value) and float(value[:-1]) <= 100:
            return value
        message = f"expected {TOLERATED_EXPECTED}, got {node.text or 'another value'}"
        reading.report.add("T182", message, node.location)
        return INVALID

    def json_schema(self) -> dict[str, Any]:
        return {"anyOf": [{"type": "integer", "minimum": 0}, {"type": "string", "pattern": f"^{PERCENT}$"}]}


_KEYS = (
    Key("template", Text(NAME, NAME_RULE, max_length=MAX_NAME), "Template of the child tasks that the step starts."),
    Key("namespace", Text(), "Namespace of that template, by default the same one."),
    Key(
        "version",
        Version(VERSION, VERSION_RULE, max_length=64),
        "Version of that template, by default the newest when the step starts; all its children have the same one.",
    ),
    Key(
        "output",
        Text(may_be_empty=True),
        "Expression over `input` and `steps` of a child whose value is its output; without it, the results of its "
        "last steps by name.",
    ),
    Key(
        "max_parallel",
        Number(whole=True, minimum=1, maximum=MAX_COUNT),
        "How many children of the step are open at the same time.",
        default=MAX_PARALLEL,
    ),
    Key(
        "tolerated_failures",
        Tolerance(),
        "How many children may fail, as a number or a share (`5%`), before the step fails and the others are "
        "cancelled.",
        default=0,
    ),
    Key(
        "collect",
        Choice(("results", "none")),
        "`none` leaves the outputs out of the step's result; handlers below read them with `context.children`.",
        default="results",
    ),
)
OF_LISTS: Final = ("max_parallel", "tolerated_failures", "collect")
"""Keys that only a step with `for_each` can have."""
CHILD_KEYS = tuple(replace(key, only_with=("task",)) for key in _KEYS)
OF_CHILDREN: Final = tuple(key.name for key in _KEYS)

_TEXT, _COUNT = {"type": "string"}, {"type": "integer"}


def result_of_children(values: Values[str, Any]) -> dict[str, Any]:
    """Return the JSON Schema of the result of a step that starts child tasks, from its keys."""
    if "for_each" not in values:
        return {"type": "object", "required": ["task_uuid", "output"], "properties": {"task_uuid": _TEXT, "output": {}}}
    properties: dict[str, Any] = {"total": _COUNT, "succeeded": _COUNT, "failed": {"type": "array", "items": _COUNT}}
    if values.get("collect", "results") == "results":
        properties["results"] = {"type": "array", "items": {}}
    return {"type": "object", "required": [*properties], "properties": properties}


def children_of_step(values: Values[str, Any]) -> dict[str, Any]:
    """Return what the step starts, as it is compiled into `StepPlan.wait`."""
    each, tolerated = values.get("for_each"), values.get("tolerated_failures", 0)
    share = float(tolerated[:-1]) if isinstance(tolerated, str) else None
    return {
        "on": "task",
        "template": values["template"],
        "namespace": values.get("namespace"),
        "version": values.get("version"),
        "output": values.get("output"),
        "for_each": None if each is None else {"in": each["in"], "as": each.get("as", "item")},
        "max_parallel": values.get("max_parallel", MAX_PARALLEL),
        "tolerated": tolerated if share is None else None,
        "tolerated_percent": share,
        "collect": values.get("collect", "results"),
    }


def keys_of_children(wait: Values[str, Any]) -> dict[str, Any]:
    """Return the keys of a step from what `children_of_step` compiled."""
    share = wait["tolerated_percent"]
    tolerated = wait["tolerated"] if share is None else f"{share:g}%"
    return {
        **{key: wait[key] for key in ("template", "namespace", "version", "output", "for_each")},
        "max_parallel": None if wait["max_parallel"] == MAX_PARALLEL else wait["max_parallel"],
        "tolerated_failures": tolerated or None,
        "collect": None if wait["collect"] == "results" else wait["collect"],
    }
