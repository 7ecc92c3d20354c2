"""Access to the results of dependencies: envelopes, paths, groups."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

ENVELOPE = frozenset(
    {
        "result",
        "success",
        "status",
        "error",
        "error_message",
        "metadata",
        "step_uuid",
        "task_uuid",
        "execution_time_ms",
        "worker_id",
        "correlation_id",
    }
)


def unwrap(value: Any) -> Any:
    """Return the value inside an envelope `{"result": value}`, any other value unchanged.

    A mapping is an envelope if `result` is its only key, or if it also has `success` and only the fields of a stored
    execution: a handler's own `{"result": 1, "count": 2}` is returned unchanged.
    """
    if not isinstance(value, Mapping) or "result" not in value:
        return value
    is_envelope = len(value) == 1 or ("success" in value and value.keys() <= ENVELOPE)
    return value["result"] if is_envelope else value


def unwrap_all(results: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return every result by step name, unwrapped; steps without a result are omitted."""
    plain = {name: unwrap(value) for name, value in (results or {}).items()}
    return {name: value for name, value in plain.items() if value is not None}


def dig(value: Any, path: tuple[str, ...]) -> Any:
    """Return the value below `path`, or None if a part is missing."""
    for key in path:
        if not isinstance(value, Mapping):
            return None
        value = value.get(key)
    return value


def names_with_prefix(names: Mapping[str, Any], prefix: str) -> list[str]:
    """Return the names that start with `prefix`, numbered ones in the order of their number."""
    return sorted((name for name in names if name.startswith(prefix)), key=_by_number)


def _by_number(name: str) -> tuple[str, int]:
    match = re.fullmatch(r"(.*?)(\d+)", name)
    return (match[1], int(match[2])) if match else (name, -1)
