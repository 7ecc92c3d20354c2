"""Changes of single values of an input, addressed by their paths."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from tasker.errors import UsageError

EXAMPLE = "expected a path such as address.zip"


def changed(values: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of the input with a value set at each path (`address.zip`). Raises `UsageError`."""
    copy = deepcopy(dict(values))
    for path, value in changes.items():
        if not all(path.split(".")):
            raise UsageError(f"set: {path!r} is not a path", hint=EXAMPLE)
        put_value(copy, path, value, f"set {path}")
    return copy


def put_value(values: dict[str, Any], path: str, value: Any, subject: str) -> None:
    """Set a value at a path and create missing parent objects. Raises `UsageError`; its message begins with
    `subject`."""
    *above, last = path.split(".")
    for depth, name in enumerate(above, 1):
        values = values.setdefault(name, {})
        if not isinstance(values, dict):
            raise UsageError(f"{subject}: `{'.'.join(above[:depth])}` is not an object, so its fields cannot be set")
    values[last] = value
