"""Tenants, unique keys and debounce keys, read from the input at the paths that a template gives."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from tasker.engine.identity import canonical_json
from tasker.errors import InputInvalid, UsageError
from tasker.expressions.path import place_text
from tasker.template.names import COLLECT, COLLECTED
from tasker.template.plan import Plan
from tasker.template.schema_check import SchemaMismatch

MOST_CHARACTERS = 200
"""Longest value that is stored as it is; a longer one as its hash, so that it fits an index."""


LONGEST_TENANT = 100
MOST_COLLECTED = 1000
"""Number of inputs that one task with `keep: collect` gets; a further submission creates the next task."""


def tenant_of(plan: Plan, given: Any, values: Mapping[str, Any]) -> str | None:
    """Return the tenant of a task: `given` by its submission, or what its template finds in the input.

    Raises `InputInvalid` if neither names one although the template wants one, `UsageError` if they differ or are no
    name.
    """
    named = None if given is None else _tenant(given)
    if plan.tenant is None:
        return named
    value = value_at(values, plan.tenant["input"])
    if value is None:
        if named is None:
            raise no_value(plan, plan.tenant, "tenant")
        return named
    found = _tenant(value)
    if named not in (None, found):
        hint = f"omit it: the template takes the tenant from {place_text(plan.tenant)}"
        raise UsageError(f"tenant: the submission says {named!r}, the input {found!r}", hint=hint)
    return found


def _tenant(value: Any) -> str:
    if not isinstance(value, str):
        raise UsageError(f"tenant: expected a text, found {value!r:.80}")
    if not 1 <= len(value) <= LONGEST_TENANT or not value.isprintable():
        raise UsageError(f"tenant: expected 1 to {LONGEST_TENANT} printable characters, found {value!r:.120}")
    return value


def unique_item(plan: Plan, values: Mapping[str, Any], tenant: str | None) -> dict[str, str]:
    """Return the unique key of a task as the engine takes it; {} if its template has none. Raises `InputInvalid`.

    Tenants share no key.
    """
    if plan.unique is None:
        return {}
    value: Any = ""
    if plan.unique:
        value = value_at(values, plan.unique["input"])
        if value is None:
            raise no_value(plan, plan.unique, "unique")
    return {"unique": key_text(value if tenant is None else [tenant, value])}


def debounce_item(
    plan: Plan, values: Mapping[str, Any], tenant: str | None, limit_bytes: int
) -> dict[str, dict[str, Any]]:
    """Return the debounce key of a task as the engine takes it; {} if its template has none. Raises `InputInvalid`.

    Tenants share no key.
    """
    if plan.debounce is None:
        return {}
    value: Any = ""
    if (place := plan.debounce["key"]) is not None:
        value = value_at(values, place["input"])
        if value is None:
            raise no_value(plan, place, "debounce")
    item = {
        "value": key_text(value if tenant is None else [tenant, value]),
        "wait_ms": round(plan.debounce["wait"] * 1000),
        "latest_ms": round(plan.debounce["max_wait"] * 1000),
        "collect": plan.debounce["keep"] == COLLECT,
        "most": MOST_COLLECTED,
        "bytes": limit_bytes,
    }
    return {"debounce": item}


def collected(plan: Plan, values: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the input of a task of its own: with `keep: collect` it has the list of the inputs merged so far."""
    if plan.debounce is None or plan.debounce["keep"] != COLLECT:
        return values
    own = {name: value for name, value in values.items() if name != COLLECTED}
    return {**own, COLLECTED: [own]}


def value_at(values: Any, parts: Sequence[str]) -> Any:
    """Return the value at a path of the input, or None if there is none."""
    for part in parts:
        if isinstance(values, Mapping):
            values = values.get(part)
        elif isinstance(values, list | tuple) and part.isdecimal() and int(part) < len(values):
            values = values[int(part)]
        else:
            return None
    return values


def no_value(plan: Plan, place: Mapping[str, Any], key: str) -> InputInvalid:
    """Return the error for an input without a value at the path that this key of the template has."""
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
