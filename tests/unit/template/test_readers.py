"""A key that is accepted does something: what it changes in the plan is read where plans are acted on, or it warns."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from tasker.template.compile import compile_text
from tasker.template.mapping import Key, Mapping
from tasker.template.model import TEMPLATE
from tasker.template.step_types import WAITING
from tasker.template.value_kinds import ListOf, MapOf
from tests.unit.template.support import DATA

SOURCES = Path(__file__).parents[3] / "tasker"
NOT_ACTING = {"template"}
"""Where a plan is made, described or copied: being named there is no effect."""

READERS = {
    "Plan": {"plan"},
    "Rule": {"rule"},
    "ForEach": {"each"},
    "StepPlan": {"step", "plan_step", "pattern", "above"},
    "RetryPolicy": {"policy", "retry"},
    "BatchSettings": {"advice"},
    "HandlerRef": {"handler", "definition"},
    "StepBreaker": {"policy"},
    "StepLimit": set(),
}
"""What the values of a plan are called where they are read: `cursor.batch_size` is another thing than a plan's."""

FOR_PEOPLE = {"description", "metadata", "loaded_from"}
IDENTITY = {"name", "namespace_name", "version", "steps", "handler", "callable", "type", "dependencies"}
"""Without these there is no plan to compare with; every test shows that they act."""

Location = tuple[str | int, ...]


@cache
def read(kind: str, field: str) -> bool:
    """Whether the field of a plan's value is read by what acts on plans."""
    return any((name, field) in _attributes() for name in READERS[kind])


@cache
def _attributes() -> frozenset[tuple[str, str]]:
    files = (file for file in SOURCES.rglob("*.py") if not NOT_ACTING & {*file.relative_to(SOURCES).parts})
    nodes = (node for file in files for node in ast.walk(ast.parse(file.read_text())))
    return frozenset(
        (getattr(node.value, "id", None) or getattr(node.value, "attr", ""), node.attr)
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Load)
    )


@cache
def in_sql(name: str) -> bool:
    """Whether the engine's SQL reads a key of `lifecycle`."""
    files = (SOURCES / "db" / "sql" / "functions").rglob("*.sql")
    return any(f"lifecycle->>'{name}'" in file.read_text().replace("'lifecycle'", "lifecycle") for file in files)


@cache
def _storing() -> str:
    functions = SOURCES / "db" / "sql" / "functions"
    files = ("templates/store_template", "schedules/declare_schedules", "limits/limit_rule")
    return "".join((functions / f"{file}.sql").read_text() for file in files)


def is_stored(field: str) -> bool:
    """Whether the engine's SQL stores the field of a plan or a step, as it does with what it acts on itself."""
    rows = ("s", "l.rule", "l", "p_plan", "p_plan->'concurrency'")
    return any(f"{row}{arrow}'{field}'" in _storing() for row in rows for arrow in ("->", "->>"))


def document() -> dict[str, Any]:
    text = (DATA / "good" / "every_key.yaml").read_text().replace(", NO: norway, on: yes", "")
    found: dict[str, Any] = yaml.safe_load(text)
    found["steps"][0]["retry"] |= {"retryable": False, "max_attempts": 7, "profile": "aggressive"}  # none is a default
    found["steps"][0]["publishes_events"][0]["condition"] = "always"
    found["steps"][0]["system_dependency"] = "default"  # so that the declaration can be taken away
    return found | {"version": "1.10", "metadata": {"author": "x"}, "system_dependencies": {"secondary": ["a"]}}


def keys(shape: Any, value: Any, at: Location = ()) -> Iterator[tuple[Location, Key]]:
    """Every key of the language that the document has, with its place; nothing below a key that warns."""
    if isinstance(shape, ListOf | MapOf) and value:
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for index, item in items:
            yield from keys(shape.item, item, (*at, index))
    elif isinstance(shape, Mapping) and isinstance(value, dict):
        for key in shape.keys:
            if key.name in value:
                yield (*at, key.name), key
                yield from () if key.idle else keys(key.shape, value[key.name], (*at, key.name))


def compiled(data: dict[str, Any], location: Location) -> Any:
    environment = "production" if location[0] == "environments" else None
    result = compile_text(yaml.safe_dump(data), environment=environment)
    return result.plans[0] if result.ok else None


INSTEAD: dict[str, dict[str, Any]] = {
    "cron": {"every": "1h"},
    "every": {"cron": "0 0 * * *"},
    "context_from": {"context": {"order_id": "a"}},
}
"""What a schedule needs in place of a key."""


OTHERWISE = {"when": "input.order_id == ''", "then": [], "else": ["thank"], "in": "[3]"}
"""Other values of required keys of rules and lists."""


OF_WAITS = {
    "for": "4d",
    "until": {"next": "friday", "at": "09:00"},
    "event": "payment.refused",
    "events": [{"event": "review.refused"}],
    "timeout": "9d",
    "every": "5h",
    "after": "6h",
}
"""Other values of required keys of steps that wait."""
OF_THEM = {"events", "reminders", "escalate"}


OF_CHILDREN = {"template": "letter", "namespace": "archive", "in": "[3]"}
"""Other values of required keys of steps that start child tasks."""


def without(location: Location) -> Any:
    data = copy.deepcopy(document())
    inside: Any = data
    for part in location[:-1]:
        inside = inside[part]
    if location[-2:] in {("concurrency", "limit"), ("rate_limit", "rate"), ("memoize", "ttl")}:
        inside[location[-1]] = {"limit": 7, "rate": "7/s", "ttl": "7h"}[str(location[-1])]  # it is required
    elif location[-1] in OTHERWISE and ("rules" in location[:-1] or "for_each" in location):
        inside[location[-1]] = OTHERWISE[str(location[-1])]
    elif location[-1] in OF_WAITS and (inside.get("type") in WAITING or OF_THEM.intersection(location[:-1])):
        inside[location[-1]] = OF_WAITS[str(location[-1])]
    elif inside.get("type") == "task" and location[-1] in OF_CHILDREN:
        inside[location[-1]] = OF_CHILDREN[str(location[-1])]
    elif location == ("unique", "key"):
        data["unique"] = "while_running"
    elif location in {("tenant", "from"), ("fairness", "key")}:
        del data[location[0]]
    else:
        del inside[location[-1]]
    if location[-1] == "rules":
        inside["handler"] = "orders.Route"
    if location == ("steps", 0, "inputs"):
        del data["environments"]["production"]["steps"][1]["inputs"]
    inside |= INSTEAD.get(str(location[-1]), {}) if "schedules" in location else {}
    if location[-1] == "mode":
        inside.pop("memory_mb", None)  # which needs it
    if location[-1] == "effect":
        inside.pop("memoize", None)  # which needs it
    return compiled(data, location)


def differences(one: Any, other: Any) -> set[tuple[str, str]]:
    """Class and name of every field that differs, the innermost ones."""
    found: set[tuple[str, str]] = set()
    for field in fields(one):
        a, b = getattr(one, field.name), getattr(other, field.name)
        pairs = list(zip(a, b, strict=True)) if isinstance(a, tuple) and len(a) == len(b) else [(a, b)]
        for left, right in pairs:
            if is_dataclass(left) and is_dataclass(right):
                found |= differences(left, right)
            elif left != right:
                found.add((type(one).__name__, field.name))
    return found


FOUND = [
    (location, key)
    for location, key in keys(TEMPLATE, document())
    if key.name not in FOR_PEOPLE | IDENTITY and (key.idle or not isinstance(key.shape, Mapping))
]


@pytest.mark.parametrize(
    ("location", "key"), FOUND, ids=lambda part: ".".join(map(str, part)) if isinstance(part, tuple) else ""
)
def test_a_key_acts_or_warns(location: Location, key: Key) -> None:
    changed = differences(compiled(document(), location), without(location))
    acting = {
        field
        for kind, field in changed
        if read(kind, field) or (field == "lifecycle" and in_sql(key.name)) or is_stored(field)
    }
    assert changed, "the key does not even reach the plan"
    assert bool(acting) != bool(key.idle), f"{location} changes {changed}; read are {acting or 'none'}"


def test_what_is_only_named_somewhere_is_not_read() -> None:
    assert read("StepPlan", "timeout_seconds")
    assert not in_sql("max_retries")
    assert read("StepPlan", "publishes_events")
    assert not read("BatchSettings", "batch_size"), "cursors have one, too"
    assert not read("Plan", "lifecycle"), "a package is called so"


def test_the_document_has_every_key_of_the_language() -> None:
    debounced = {"debounce": {"key": "input.order_id", "wait": "30s", "max_wait": "5m", "keep": "collect"}}
    documents = (document(), debounced)  # `debounce` and `unique` exclude each other
    had = {(location[-1], key.doc) for data in documents for location, key in keys(TEMPLATE, data)}

    def all_of(shape: Any) -> Iterator[Key]:
        while isinstance(shape, ListOf | MapOf):
            shape = shape.item
        for key in shape.keys if isinstance(shape, Mapping) else ():
            yield key
            yield from () if key.idle or key.notice else all_of(key.shape)

    excluded = ("completion",)  # it is another form of a template's `on_failure`
    missing = [
        k.name
        for k in all_of(TEMPLATE)
        if (k.name, k.doc) not in had and k.name not in excluded and not (k.notice or k.refused)
    ]
    assert not missing
