"""Who is above whom in a graph, found when it is asked for: a chain of n steps has n squared over two such pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

KEPT = 128
"""Sets of at most so many steps are kept, so that what is kept grows with the number of steps."""


class Ancestry:
    """The steps that a step reaches along the edges, one way. Edges to what is no step are ignored."""

    def __init__(self, edges: Mapping[str, Sequence[str]]) -> None:
        self._edges = edges
        self._kept: dict[str, tuple[str, ...]] = {}

    def of(self, name: str) -> tuple[str, ...]:
        """Every step that is reached from this one, sorted; the step itself is not among them."""
        if (kept := self._kept.get(name)) is not None:
            return kept
        found = tuple(sorted(self.reached([name])))
        if len(found) <= KEPT:
            self._kept[name] = found
        return found

    def reached(self, names: Sequence[str], known: set[str] | frozenset[str] = frozenset()) -> set[str]:
        """Every step below these that is not `known`, nor below what is: a set that grows is looked through once."""
        edges = self._edges
        found: set[str] = set()
        todo = list(names)
        while todo:
            for other in edges[todo.pop()]:
                if other in edges and other not in found and other not in known:
                    found.add(other)
                    todo.append(other)
        return found
