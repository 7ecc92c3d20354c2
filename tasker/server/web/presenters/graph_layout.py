"""Layout of an acyclic graph in columns by distance from the roots, with few crossing lines.

The server computes it so that a graph is readable without scripts. Several sweeps order the boxes of each column by the
positions of their neighbours (the barycentre heuristic of layered drawings). A line that passes through columns has a
position in each of them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from tasker.dataclasses import dataclass

GAP_X, GAP_Y, MARGIN = 56, 14, 12
SWEEPS = 6
THIN = 0.35
"""Height of a passing line, in boxes."""

Key = str | tuple[str, str, int]
"""Box, or the position of a line in a column that it passes."""
Edge = tuple[str, str]


@dataclass(frozen=True, slots=True)
class GraphPosition:
    """Upper left corner of a box."""

    x: int
    y: int


@dataclass(frozen=True, slots=True)
class GraphLine:
    """Line from the right side of one box to the left side of another; `path` is in SVG notation."""

    start: str
    end: str
    path: str


@dataclass(frozen=True, slots=True)
class GraphLayout:
    """Positions of boxes, and lines, in pixels."""

    places: Mapping[str, GraphPosition]
    lines: Sequence[GraphLine]
    width: int
    height: int


def laid_out(keys: Sequence[str], edges: Sequence[Edge], width: int, height: int) -> GraphLayout:
    """Return the positions of boxes of this size and the lines between them."""
    levels = _levels(keys, edges)
    columns, chains = _columns(keys, edges, levels)
    _untangle(columns, chains)
    rows = _rows(columns)
    pitch = height + GAP_Y
    total = max((_heights(column)[-1] for column in columns if column), default=0)
    centres = {key: round(MARGIN + place * pitch) for key, place in rows.items()}
    places = {key: GraphPosition(MARGIN + levels[key] * (width + GAP_X), centres[key] - height // 2) for key in keys}
    lines = [_line(chain, places, centres, width, height) for chain in chains]
    wide = MARGIN * 2 + len(columns) * (width + GAP_X) - (GAP_X if columns else 0)
    return GraphLayout(places, lines, wide, round(MARGIN * 2 + total * pitch) if keys else 0)


def _levels(keys: Sequence[str], edges: Iterable[Edge]) -> dict[str, int]:
    """Return the longest distance of each box from a root."""
    parents: defaultdict[str, list[str]] = defaultdict(list)
    for start, end in edges:
        parents[end].append(start)
    levels: dict[str, int] = {}

    def level(key: str) -> int:
        waiting = [key]
        while waiting:
            last = waiting[-1]
            missing = [parent for parent in parents[last] if parent not in levels]
            if missing:
                waiting += missing
                continue
            waiting.pop()
            levels[last] = 1 + max((levels[parent] for parent in parents[last]), default=-1)
        return levels[key]

    for key in keys:
        if key not in levels:
            level(key)
    return levels


def _columns(
    keys: Sequence[str], edges: Iterable[Edge], levels: Mapping[str, int]
) -> tuple[list[list[Key]], list[list[Key]]]:
    """Return boxes and passing lines by column, and each line as the chain of its positions from its first to its last
    box."""
    columns: list[list[Key]] = [[] for _ in range(max(levels.values(), default=-1) + 1)]
    for key in keys:
        columns[levels[key]].append(key)
    chains: list[list[Key]] = []
    for start, end in dict.fromkeys(edges):
        passed: list[Key] = [(start, end, at) for at in range(levels[start] + 1, levels[end])]
        for at, passing in enumerate(passed, levels[start] + 1):
            columns[at].append(passing)
        chains.append([start, *passed, end])
    return columns, chains


def _untangle(columns: list[list[Key]], chains: Iterable[Sequence[Key]]) -> None:
    """Place connected boxes next to each other by sweeping over the columns in both directions."""
    before: defaultdict[Key, list[Key]] = defaultdict(list)
    behind: defaultdict[Key, list[Key]] = defaultdict(list)
    for chain in chains:
        for left, right in pairwise(chain):
            behind[left].append(right)
            before[right].append(left)
    for sweep in range(SWEEPS):
        neighbours, order = (before, columns) if sweep % 2 == 0 else (behind, columns[::-1])
        for fixed, column in pairwise(order):
            _sort(column, fixed, neighbours)


def _sort(column: list[Key], fixed: Sequence[Key], neighbours: Mapping[Key, Sequence[Key]]) -> None:
    at = {key: place for place, key in enumerate(fixed)}
    centre = {}
    for place, key in enumerate(column):
        places = [at[other] for other in neighbours.get(key, ()) if other in at]
        position = place * len(fixed) / max(1, len(column))
        centre[key] = sum(places) / len(places) if places else position
    column.sort(key=lambda key: centre[key])


def _heights(column: Sequence[Key]) -> list[float]:
    """Return the lower end of each item of a column, in boxes."""
    ends, top = [], 0.0
    for key in column:
        top += 1.0 if isinstance(key, str) else THIN
        ends.append(top)
    return ends


def _rows(columns: Sequence[Sequence[Key]]) -> dict[Key, float]:
    """Return the centre of each box and passing line, in boxes; every column is centred."""
    tallest = max((_heights(column)[-1] for column in columns if column), default=0.0)
    rows: dict[Key, float] = {}
    for column in columns:
        ends = _heights(column)
        top = (tallest - (ends[-1] if ends else 0.0)) / 2
        for key, end in zip(column, ends, strict=True):
            rows[key] = top + end - (0.5 if isinstance(key, str) else THIN / 2)
    return rows


def _line(
    chain: Sequence[Key], places: Mapping[str, GraphPosition], centres: Mapping[Key, int], width: int, height: int
) -> GraphLine:
    start, end = str(chain[0]), str(chain[-1])
    x, y = places[start].x + width, places[start].y + height // 2
    parts = [f"M{x} {y}"]
    for number, key in enumerate(chain[1:], 1):
        last = number == len(chain) - 1
        to_x = places[end].x if last else places[start].x + number * (width + GAP_X)
        to_y = places[end].y + height // 2 if last else centres[key]
        middle = (x + to_x) // 2
        parts.append(f"C{middle} {y} {middle} {to_y} {to_x} {to_y}")
        if not last:
            parts.append(f"H{to_x + width}")
            to_x += width
        x, y = to_x, to_y
    return GraphLine(start, end, "".join(parts))
