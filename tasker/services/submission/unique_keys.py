"""Values at places of an input that templates name: unique keys."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from tasker.engine.identity import canonical_json
from tasker.errors import InputInvalid
from tasker.template.plan import Plan
from tasker.template.schema_check import SchemaMismatch
from tasker.template.times import place_text

MOST_CHARACTERS = 200
"""Longest value that is stored as it is; a longer one as its hash, so that it fits an index."""


def unique_item(plan: Plan, values: Mapping[str, Any]) -> dict[str, str]:
    """Return the unique key of a task as the engine takes it; {} if its template has none. Raises `InputInvalid`."""
    if plan.unique is None:
        return {}
    if not plan.unique:
        return {"unique": ""}
    value = value_at(values, plan.unique["input"])
    if value is None:
        raise no_value(plan, plan.unique, "unique")
    return {"unique": key_text(value)}


def value_at(values: Any, parts: Sequence[str]) -> Any:
    """Return the value at a place of the input, or None if there is none."""
    for part in parts:
        if isinstance(values, Mapping):
            values = values.get(part)
        elif isinstance(values, list | tuple) and part.isdecimal() and int(part) < len(values):
            values = values[int(part)]
        else:
            return None
    return values


def no_value(plan: Plan, place: Mapping[str, Any], key: str) -> InputInvalid:
    """Return the error for an input without a value at the place that this key of the template names."""
    path = "$" + place_text(place).removeprefix("input")
    problem = SchemaMismatch(path, f"expected a value, which is the key of the template's `{key}`")
    return InputInvalid(
        f"the input does not fit the template {plan.namespace}/{plan.name}:\n  {problem.path}: {problem.message}",
        problems=[problem],
    )


def key_text(value: Any) -> str:
    """Return a value as text: a text itself, other values as JSON, long ones as their hash."""
    text = value if isinstance(value, str) else canonical_json(value)
    return text if len(text) <= MOST_CHARACTERS else f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"
