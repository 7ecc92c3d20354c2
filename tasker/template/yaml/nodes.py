"""YAML values with their locations."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from yaml.composer import Composer
from yaml.error import MarkedYAMLError, YAMLError
from yaml.nodes import Node as YamlNode
from yaml.nodes import ScalarNode
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner

from tasker.dataclasses import dataclass
from tasker.template.diagnostics import Position

BROKEN = object()
"""Value of a node that could not be read; the reason has been reported."""


@dataclass(frozen=True, slots=True)
class Node:
    """Value and its position.

    `value` is a dict of `Entry`, a list of `Node`, a scalar, or `BROKEN`; `text` is a scalar as written.
    """

    value: Any
    location: Position
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


LINE_BREAK = re.compile("\r\n|[\n\r\x85\u2028\u2029]")


def line_of(text: str, number: int) -> str:
    """Return the line with this number, counted from 1; empty behind the end."""
    lines = LINE_BREAK.split(text)
    return lines[number - 1] if number <= len(lines) else ""


def location_of_offset(offset: int, text: str) -> Position:
    """Return the line and column of a character."""
    before = LINE_BREAK.split(text[:offset])
    return Position(len(before), len(before[-1]) + 1)


MAX_DEPTH = 100
PLAIN = "plain"
QUOTED = "quoted"
COLLECTION = "collection"


class TooDeep(MarkedYAMLError):
    """Nesting deeper than `MAX_DEPTH`."""


class Markers:
    """Composer mixin that marks nodes without an explicit tag."""

    def resolve(self, kind: type[YamlNode], value: Any, implicit: Any) -> str:
        """Return the marker; `scalars` resolves its meaning."""
        if kind is not ScalarNode:
            return COLLECTION
        return PLAIN if implicit[0] else QUOTED

    def descend_resolver(self, parent: Any, index: Any) -> None:
        """Do nothing: no marker depends on the path of a node."""

    def ascend_resolver(self) -> None:
        """Do nothing: no marker depends on the path of a node."""


class Loader(Markers, Reader, Scanner, Parser, Composer):
    """Composer of documents; the tag of a node is explicit, or one of `PLAIN`, `QUOTED` and `COLLECTION`."""

    def __init__(self, text: str) -> None:
        Reader.__init__(self, text)
        Scanner.__init__(self)
        Parser.__init__(self)
        Composer.__init__(self)
        self._depth = 0

    def compose_node(self, parent: Any, index: Any) -> YamlNode | None:
        """Compose one node. Raises `TooDeep` beyond `MAX_DEPTH`."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise TooDeep(problem=f"more than {MAX_DEPTH} levels of nesting", problem_mark=mark)
        node = super().compose_node(parent, index)
        self._depth -= 1
        return node


def compose_quickly(text: str) -> list[YamlNode] | None:
    """Compose the documents with libyaml, in a tenth of the time; None if it is missing or the text has a problem.

    `Loader` then reports the problem and its position.
    """
    try:
        from yaml._yaml import CParser
    except ImportError:
        return None

    class QuickLoader(Markers, CParser):
        depth = 0

        def descend_resolver(self, parent: Any, index: Any) -> None:
            self.depth += 1
            if self.depth > MAX_DEPTH:
                raise TooDeep(problem=f"more than {MAX_DEPTH} levels of nesting")

        def ascend_resolver(self) -> None:
            self.depth -= 1

    roots: list[YamlNode] = []
    try:
        loader = QuickLoader(text)
        while loader.check_node():
            root = loader.get_node()
            roots += [root] if root is not None else []
    except (YAMLError, ValueError, OverflowError):
        return None
    return roots
