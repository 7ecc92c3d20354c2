"""A state machine as a table: which event leads from which state to which."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from itertools import pairwise
from typing import Generic, NamedTuple, TypeVar

from tasker.contracts.dataclasses import dataclass

S = TypeVar("S", bound=StrEnum)
E = TypeVar("E", bound=StrEnum)


class StateGroup(NamedTuple):
    """States that SQL asks for together, by a function of its own; `meaning` says of what is in one of them."""

    states: frozenset[str]
    meaning: str


@dataclass(frozen=True)
class Machine(Generic[S, E]):
    """The legal transitions of one kind of subject; everything that is not in `table` is refused."""

    subject: str
    table: Mapping[tuple[S, E], S]

    def legal(self, state: S) -> dict[E, S]:
        """The events that are legal in `state`, each with the state it leads to."""
        return {event: target for (source, event), target in self.table.items() if source == state}

    def allows(self, states: Iterable[S]) -> bool:
        """True when each state of the sequence follows from the one before by some event."""
        edges = {(source, target) for (source, _), target in self.table.items()}
        return all(pair in edges for pair in pairwise(states))

    def shortest_path(
        self, start: S, end: S, *, without: frozenset[E] = frozenset(), ends: frozenset[S] = frozenset()
    ) -> tuple[S, ...] | None:
        """The states to pass through from `start` to `end`, without `start`; () when it is there, None without a way.

        `without` are events that the way may not use; the way may start in or arrive at a state of `ends`, but never
        pass through one.
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
