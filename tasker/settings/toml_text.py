"""Tables written as TOML. The standard library reads it only."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def toml_text(tables: Mapping[str, Any]) -> str:
    """The tables as TOML, each under its full name; within a table plain values come first."""
    return "\n".join(_table(tables, "")).strip() + "\n"


def toml_value(value: Any) -> str:
    """A plain value or a list of them. JSON's form of texts, numbers and switches is TOML's too."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml_value, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _table(table: Mapping[str, Any], path: str) -> Iterator[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    if path and plain:
        yield f"\n[{path}]"
    for key, value in plain.items():
        yield f"{key} = {toml_value(value)}"
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _table(value, f"{path}.{key}".lstrip("."))
