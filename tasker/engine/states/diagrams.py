"""Mermaid diagrams and tables of the state machines, generated from the engine's tables."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from enum import StrEnum

from tasker.engine.states.machine import E, Machine, S

_MANY = 6
"""Number of source states from which an event is drawn only once, from a frame around the states."""


def mermaid(machine: Machine[S, E], start: S, final: Collection[S]) -> str:
    """Return a state diagram; `start` is the initial state, `final` are the states in which a subject may rest."""
    framed = _framed(machine)
    inside = {source for (source, event) in machine.table if event in framed}
    lines = ["stateDiagram-v2", f"  [*] --> {start}"]
    edges = [(source, event, target) for (source, event), target in machine.table.items() if event not in framed]
    among = [edge for edge in edges if edge[0] in inside and edge[2] in inside]
    lines += ["  state open {", *(_arrow(*edge, "    ") for edge in among), "  }"]
    lines += [_arrow(*edge, "  ") for edge in edges if edge not in among]
    lines += [f"  open --> {target} : {event}" for event, target in framed.items()]
    return "\n".join([*lines, *(f"  {state} --> [*]" for state in sorted(final))])


def _framed(machine: Machine[S, E]) -> dict[E, S]:
    """Return the events that lead from many states to one, with that state."""
    sources: dict[tuple[E, S], int] = {}
    for (_, event), target in machine.table.items():
        sources[event, target] = sources.get((event, target), 0) + 1
    return {event: target for (event, target), count in sources.items() if count >= _MANY}


def _arrow(source: StrEnum, event: StrEnum, target: StrEnum, indent: str) -> str:
    return f"{indent}{source} --> {target} : {event}"


def transition_table(machine: Machine[S, E]) -> str:
    """Return all transitions as a Markdown table; states with equal (event, to) share a row."""
    rows: dict[tuple[E, S], list[S]] = {}
    for (source, event), target in machine.table.items():
        rows.setdefault((event, target), []).append(source)
    return markdown(
        ("event", "from", "to"),
        [(event, ", ".join(f"`{s}`" for s in sources), f"`{target}`") for (event, target), sources in rows.items()],
    )


def walk(path: Sequence[StrEnum]) -> str:
    """Return a path of states in one line."""
    return " → ".join(f"`{state}`" for state in path)


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
