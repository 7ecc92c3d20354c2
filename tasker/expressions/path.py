"""Path to a value in the input of a task or in the result of one of its steps."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tasker.dataclasses import dataclass

INPUT, STEPS = "input", "steps"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_PART = re.compile(r'\.(?P<name>[A-Za-z_][A-Za-z0-9_-]*)|\[(?P<index>\d{1,9})\]|\[(?P<quoted>"(?:[^"\\]|\\.)*")\]')
EXPECTED = 'expected a path such as input.customer.id, steps.quote.amount, steps["a.b"].items[0]'


@dataclass(frozen=True, slots=True)
class DataPath:
    """Path to a value: `step` is None for the input. An index of a list is a part like any other: `0`."""

    step: str | None
    parts: tuple[str, ...]

    def __str__(self) -> str:
        names = self.parts if self.step is None else (self.step, *self.parts)
        return (INPUT if self.step is None else STEPS) + "".join(map(_written, names))


def parse_path(text: str) -> DataPath:
    """Parse a path. Raises `PathError` with the offset of the first character that does not fit."""
    root = next((word for word in (INPUT, STEPS) if re.match(rf"{word}(?=[.\[])", text)), None)
    if root is None:
        raise PathError(f"{EXPECTED}, got {text[:60]!r}", 0)
    parts, at = [], len(root)
    while at < len(text):
        part = _PART.match(text, at)
        if part is None:
            raise PathError(f"{EXPECTED}; {text[at:][:20]!r} is neither a field nor an index", at)
        parts.append(_value(part, at))
        at = part.end()
    if root == INPUT:
        return DataPath(None, tuple(parts))
    if len(parts) < 2:
        raise PathError(f"{EXPECTED}; a field of the result is missing", len(text))
    return DataPath(parts[0], tuple(parts[1:]))


class PathError(ValueError):
    """Malformed path; `offset` is the position of the mistake in the text."""

    def __init__(self, message: str, offset: int) -> None:
        super().__init__(message)
        self.offset = offset


def _value(part: re.Match[str], at: int) -> str:
    if part["quoted"] is None:
        return part["name"] or str(int(part["index"]))
    try:
        value: str = json.loads(part["quoted"])
        value.encode()  # not half a character
    except ValueError:
        raise PathError(f"{EXPECTED}; {part['quoted'][:20]} is not a JSON string", at) from None
    if "\0" in value:
        raise PathError(f"{EXPECTED}; no field has the character NUL", at)
    return value


def _written(name: str) -> str:
    if _NAME.fullmatch(name):
        return f".{name}"
    return f"[{name}]" if re.fullmatch(r"0|[1-9]\d{0,8}", name) else f"[{json.dumps(name, ensure_ascii=False)}]"


def place_text(place: Mapping[str, Any]) -> str:
    """Return a place in a task's data, `{input}` or `{step, path}`, as it is written in a template."""
    return str(DataPath(place.get("step"), tuple(place["input"] if "input" in place else place["path"])))
