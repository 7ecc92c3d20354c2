"""YAML document as plain values with their positions in the file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from tasker.contracts.dataclasses import dataclass
from tasker.template.diagnostics import Position

BROKEN = object()
"""Value of a node that could not be read; the reason has been reported."""


@dataclass(frozen=True, slots=True)
class Node:
    """Value and its position.

    `value` is a dict of `Entry`, a list of `Node`, a scalar, or `BROKEN`; `text` is a scalar as written.
    """

    value: Any
    place: Position
    text: str | None = None

    @property
    def broken(self) -> bool:
        """True if the value could not be read."""
        return self.value is BROKEN

    def plain(self) -> Any:
        """Return the value without positions: dicts, lists and scalars."""
        if isinstance(self.value, dict):
            return {key: entry.node.plain() for key, entry in self.value.items()}
        if isinstance(self.value, list):
            return [item.plain() for item in self.value]
        return None if self.broken else self.value

    def texts(self) -> Iterator[Node]:
        """Yield every text in the value, in order."""
        if isinstance(self.value, dict):
            below = [entry.node for entry in self.value.values()]
        else:
            below = self.value if isinstance(self.value, list) else []
        for node in below:
            yield from node.texts()
        if isinstance(self.value, str):
            yield self


class Entry(NamedTuple):
    """Value of a mapping with the position of its key."""

    key: Position
    node: Node


def describe(node: Node) -> str:
    """Describe a value for a message: `the text 'abc'`, `the number 5`, `a list`."""
    value = node.value
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return f"`{node.text}`"
    if isinstance(value, (int, float)):
        return f"the number {_short(str(node.text))}"
    if isinstance(value, str):
        return f"the text '{_short(value)}'"
    return "a list" if isinstance(value, list) else "a mapping"


def _short(text: str, limit: int = 40) -> str:
    line = text.replace("\n", "\\n")
    return line if len(line) <= limit else line[: limit - 3] + "..."
