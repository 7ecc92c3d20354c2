"""State machine as a table of (state, event) and the resulting state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

from tasker.dataclasses import dataclass

S = TypeVar("S", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)


class StateGroup(NamedTuple):
    """States that SQL checks together with one function; `meaning` describes a subject in one of them."""

    states: frozenset[str]
    meaning: str


@dataclass(frozen=True)
class Machine(Generic[S, E]):
    """Legal transitions of one kind of subject; everything not in `table` is refused."""

    subject: str
    table: Mapping[tuple[S, E], S]

    def legal(self, state: S) -> dict[E, S]:
        """Return the events that are legal in `state`, each with the resulting state."""
        return {event: target for (source, event), target in self.table.items() if source == state}

    def allows(self, states: Iterable[S]) -> bool:
        """Return whether each state of the sequence follows from the previous one by some event."""
        edges = {(source, target) for (source, _), target in self.table.items()}
        return all(pair in edges for pair in pairwise(states))

    def shortest_path(
        self, start: S, end: S, *, without: frozenset[E] = frozenset(), ends: frozenset[S] = frozenset()
    ) -> tuple[S, ...] | None:
        """Return the states from `start` to `end`, without `start`; () if they are equal, None if there is no path.

        The path uses no events of `without`. It may start in or arrive at a state of `ends`, but never passes through
        one.
        """
        ways: dict[S, tuple[S, ...]] = {start: ()}
        queue = [start]
        for state in queue:
            if state in ends and state != start:
                continue
            for event, target in self.legal(state).items():
                if event not in without and target not in ways:
                    ways[target] = (*ways[state], target)
                    queue.append(target)
        return ways.get(end)
