"""Serialization of tables as TOML; the standard library only reads it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from datetime import date, time
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+", re.ASCII)


def toml_text(tables: Mapping[str, Any]) -> str:
    """Return the tables as TOML, each under its full name, plain values before nested tables."""
    return "\n".join(_table(tables, "")).strip() + "\n"


def toml_value(value: Any) -> str:
    """Format a plain value, or a list of values and tables, on one line."""
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(toml_value, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_key(key)} = {toml_value(inner)}' for key, inner in value.items())}}}"
    if isinstance(value, (date, time)):
        return value.isoformat()
    return str(value) if isinstance(value, float) else _json(value)


def _json(value: Any) -> str:
    """Encode a text, integer or boolean, whose forms in JSON and TOML are equal."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _json(name)


def _table(table: Mapping[str, Any], path: str) -> Iterator[str]:
    plain = {key: value for key, value in table.items() if not isinstance(value, Mapping)}
    if path and plain:
        yield f"\n[{path}]"
    for key, value in plain.items():
        yield f"{_key(key)} = {toml_value(value)}"
    for key, value in table.items():
        if isinstance(value, Mapping):
            yield from _table(value, f"{path}.{_key(key)}".lstrip("."))
