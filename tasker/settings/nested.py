"""Operations on settings as nested tables: merge, flatten, look up by dotted path."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

Tables = dict[str, Any]


def deep_merge(lower: Mapping[str, Any], upper: Mapping[str, Any]) -> Tables:
    """Return both tables merged; `upper` overrides key by key, lists are replaced. The arguments are not changed."""
    merged = dict(lower)
    for key, value in upper.items():
        below = merged.get(key)
        both = isinstance(below, Mapping) and isinstance(value, Mapping)
        merged[key] = deep_merge(below, value) if both else value  # type: ignore[arg-type]  # checked just above
    return merged


def leaves(tables: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield (dotted path, value) of everything that is not a table. Empty tables yield nothing."""
    for key, value in tables.items():
        path = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from leaves(value, f"{path}.")
        else:
            yield path, value


def find(tables: Mapping[str, Any], path: str, default: Any = None) -> Any:
    """Return the value or table at a dotted path, or `default`."""
    value: Any = tables
    for key in path.split("."):
        if not isinstance(value, Mapping) or key not in value:
            return default
        value = value[key]
    return value


def nested(values: Mapping[str, Any]) -> Tables:
    """Return values by dotted path as nested tables."""
    tables: Tables = {}
    for path, value in values.items():
        *parents, name = path.split(".")
        table = tables
        for parent in parents:
            table = table.setdefault(parent, {})
        table[name] = value
    return tables


def without(tables: Mapping[str, Any], paths: frozenset[str], prefix: str = "") -> Tables:
    """Return a copy without the values and tables at these dotted paths."""
    return {
        key: without(value, paths, f"{prefix}{key}.") if isinstance(value, Mapping) else value
        for key, value in tables.items()
        if f"{prefix}{key}" not in paths
    }


def covering(path: str, table: Mapping[str, str]) -> str | None:
    """Return the entry of `table` for the path itself or the nearest table above it, or None."""
    parts = path.split(".")
    for end in range(len(parts), 0, -1):
        if (entry := table.get(".".join(parts[:end]))) is not None:
            return entry
    return None
