"""Steps above and below a step, transitively."""

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
        if (cached := self._kept.get(name)) is not None:
            return cached
        reachable = tuple(sorted(self.reached([name])))
        if len(reachable) <= KEPT:
            self._kept[name] = reachable
        return reachable

    def reached(self, names: Sequence[str], known: set[str] | frozenset[str] = frozenset()) -> set[str]:
        """Return all steps reachable from `names`, except those in `known` and those reached only through them.

        A caller that extends a set passes it as `known`, so that its steps are not traversed again.
        """
        edges = self._edges
        reachable: set[str] = set()
        todo = list(names)
        while todo:
            for other in edges[todo.pop()]:
                if other in edges and other not in reachable and other not in known:
                    reachable.add(other)
                    todo.append(other)
        return reachable
