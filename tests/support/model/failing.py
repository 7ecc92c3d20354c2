"""The naive model of failure words: random graphs, and the states in which their tasks rest."""

from __future__ import annotations

from random import Random

WORDS = ("fail_task", "continue", "skip_cascade", "optional")
LETTERS = {"continue": "c", "optional": "o", "skip_cascade": "k"}
Graph = dict[str, tuple[str, str, list[str]]]
"""By step: its word, whether it is a convergence, its parents."""


def drawn(random: Random) -> Graph:
    graph: Graph = {}
    for number in range(random.randint(3, 9)):
        parents = random.sample([*graph], min(len(graph), random.choice((0, 1, 1, 2, 3))))
        skippable = any(graph[name][0] == "skip_cascade" for name in parents)
        kind = "join" if skippable and random.random() < 0.6 else "plain"
        graph[f"s{number}"] = (random.choices(WORDS, (2, 3, 4, 1))[0], kind, sorted(parents))
    return graph


def text(graph: Graph) -> str:
    lines = []
    for name, (word, kind, parents) in graph.items():
        said = "optional: true" if word == "optional" else f"on_failure: {word}"
        typed = ", type: deferred_convergence" if kind == "join" else ""
        lines.append(f"name: {name}, {said}{typed}, dependencies: [{', '.join(parents)}]")
    return "\n".join(lines)


def expected(graph: Graph, failing: set[str]) -> dict[str, str]:
    """The states in which a task rests, step by step from the top."""
    states: dict[str, str] = {}
    for name, (word, kind, parents) in graph.items():
        above = [states[parent] for parent in parents]
        dead = [state in ("error:k", "cancelled:s") for state in above]
        if (all(dead) and dead) if kind == "join" else any(dead):
            states[name] = "cancelled:s"
        elif any(state in ("pending", "error") for state in above):
            states[name] = "pending"
        elif name in failing:
            states[name] = "error" + (f":{LETTERS[word]}" if word in LETTERS else "")
        else:
            states[name] = "complete"
    return states


def end_of(states: dict[str, str]) -> tuple[str, str | None]:
    if {"error", "pending"}.intersection(states.values()):
        return "error", None
    missing = {"error:c", "error:k", "cancelled:s"}.intersection(states.values())
    return "complete", "partial" if missing else None
