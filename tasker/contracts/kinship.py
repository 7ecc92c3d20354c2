"""Ancestors and descendants in a graph, computed on demand: a chain of n steps has n*n/2 such pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

KEPT = 128
"""Largest set of steps that is cached, so that the cache grows linearly with the number of steps."""


class Ancestry:
    """Steps reachable from a step along the edges in one direction. Edges to unknown steps are ignored."""

    def __init__(self, edges: Mapping[str, Sequence[str]]) -> None:
        self._edges = edges
        self._kept: dict[str, tuple[str, ...]] = {}

    def of(self, name: str) -> tuple[str, ...]:
        """Return all steps reachable from this one, sorted, without the step itself."""
        if (kept := self._kept.get(name)) is not None:
            return kept
        found = tuple(sorted(self.reached([name])))
        if len(found) <= KEPT:
            self._kept[name] = found
        return found

    def reached(self, names: Sequence[str], known: set[str] | frozenset[str] = frozenset()) -> set[str]:
        """Return all steps reachable from `names`, except those in `known` and those reached only through them.

        A caller that extends a set passes it as `known`, so that its steps are not traversed again.
        """
        edges = self._edges
        found: set[str] = set()
        todo = list(names)
        while todo:
            for other in edges[todo.pop()]:
                if other in edges and other not in found and other not in known:
                    found.add(other)
                    todo.append(other)
        return found
