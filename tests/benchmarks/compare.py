"""Two checkouts, measured in turns; the first one twice in each round, to show what differs by itself."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.conditions import ROOT

ROUNDS = 3
HERE, OTHER, AGAIN = "here", "other", "again"
KINDS: Mapping[str, Callable[[Mapping[str, Any]], float]] = {
    "": lambda figure: float(figure["value"]),
    " cpu/step": lambda figure: sum(figure["more"].get(f"{kind}_us", 0.0) for kind in ("python", "postgresql")),
    " cpu s": lambda figure: float(figure["more"].get("cpu", 0.0)) if figure["unit"] == "s" else 0.0,
}
"""What is compared of a figure: the figure, and its CPU, which other work on the machine lengthens less."""
Found = Mapping[str, float]


def compare(other: Path, words: Sequence[str], folder: Path, tell: Callable[[str], None]) -> dict[str, list[Found]]:
    """Each round's figures of each turn. `words` are the arguments of the benchmarks, which both must know.

    Raises `SystemExit` for a folder without an environment of its own, and when a benchmark fails.
    """
    trees = {HERE: ROOT, OTHER: other.resolve(), AGAIN: ROOT}
    found: dict[str, list[Found]] = {turn: [] for turn in trees}
    for number in range(ROUNDS):
        for turn, tree in trees.items():
            tell(f"round {number + 1} of {ROUNDS}, {turn}: {tree}")
            found[turn].append(_measured(tree, words, folder / f"{turn}{number}.json"))
    return found


def _measured(tree: Path, words: Sequence[str], output: Path) -> Found:
    python = tree / ".venv" / "bin" / "python"
    if not python.exists():
        raise SystemExit(f"{tree} has no .venv: run `make bench ARGS=--help` there first")
    command = [python, "-m", "tests.benchmarks", *words, "--format", "json", "--output", output]
    done = subprocess.run(command, cwd=tree, stdout=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": ""})
    if done.returncode:
        raise SystemExit(f"the benchmarks of {tree} ended with {done.returncode}")
    figures = json.loads(output.read_text())["figures"]
    each = {f"{figure['name']}{kind}": value(figure) for figure in figures for kind, value in KINDS.items()}
    return {name: value for name, value in each.items() if value}


def compared(found: Mapping[str, Sequence[Found]]) -> str:
    """The table: medians, and what the other checkout and this one again have, as shares of the first turn."""
    names = dict.fromkeys(name for turns in found.values() for turn in turns for name in turn)
    lines = [_line("median of three", [HERE, OTHER, "other/here", "rounds", "again/here", "rounds"])]
    for name in names:
        turns = {turn: [each[name] for each in found[turn] if name in each] for turn in found}
        if all(len(values) == len(found[HERE]) for values in turns.values()):
            middle = {turn: f"{statistics.median(values):,.2f}" for turn, values in turns.items()}
            shares = [cell for turn in (OTHER, AGAIN) for cell in _share(turns[HERE], turns[turn])]
            lines.append(_line(name, [middle[HERE], middle[OTHER], *shares]))
    return "\n".join(lines)


def _share(here: Sequence[float], there: Sequence[float]) -> tuple[str, str]:
    """The ratio of the medians, and the least and the greatest of the rounds."""
    rounds = [second / first for first, second in zip(here, there, strict=True)]
    return f"{statistics.median(there) / statistics.median(here):.2f}", f"{min(rounds):.2f}-{max(rounds):.2f}"


def _line(name: str, cells: Sequence[str]) -> str:
    return f"{name:<38}" + "".join(f"{cell:>12}" for cell in cells)
