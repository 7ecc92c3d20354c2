"""PyYAML up to its composer, with positions, without resolution of implicit tags, and with limited depth."""

from __future__ import annotations

from typing import Any

from yaml.composer import Composer
from yaml.error import MarkedYAMLError, YAMLError
from yaml.nodes import Node as YamlNode
from yaml.nodes import ScalarNode
from yaml.parser import Parser
from yaml.reader import Reader
from yaml.scanner import Scanner

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
