"""Writes the SQL functions that hold what the tables of the state machines and of the step types say.

    python -m tools.lifecycle_sql

Each is one expression without a search path of its own, so the planner puts it in place of the call: it costs what the
same expression costs where it stands. A test compares the files with what this would write.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from tasker.engine.states import step, task
from tasker.engine.states.machine import E, Machine, S
from tasker.engine.states.step import STEP, StepState
from tasker.engine.states.step_changes import CHANGES, LETTERS, parking_path
from tasker.engine.states.task import TASK, TaskState, task_path
from tasker.template.step_types import DEFAULT, Creates, StepType
from tools.moves_sql import REPORTS, kinds, places
from tools.sql_text import function, grouped, is_one_of, looked_up, looked_up_once, path, wrapped

FOLDER = Path(__file__).parents[1] / "tasker" / "db" / "sql" / "functions" / "states"
HEAD = "-- Written by `python -m tools.lifecycle_sql`: change the tables that it reads, not this file.\n"


def main() -> None:
    """Writes every file anew."""
    for name in FILES:
        (FOLDER / name).write_text(text(name), encoding="utf-8")


def text(name: str) -> str:
    """What the file of that name holds."""
    return HEAD + "\n".join(part() for part in FILES[name])


def _step_path() -> str:
    ways = {kind: {state: path(states) for state, states in move.by_state.items()} for kind, move in CHANGES.items()}
    return function(
        "The states that a step passes through for one kind of change, one letter each, starting with its current "
        "state; null: not legal. A change that makes the step ready ends in `pending`: see `placed_path`.",
        "step_path",
        "p_from text, p_kind text",
        "text",
        looked_up(ways, "p_kind", "p_from"),
    )


def _task_path() -> str:
    found = {target: {state: task_path(state, target) for state in TaskState} for target in TaskState}
    ways = {target: {state: path(way) for state, way in by.items() if way is not None} for target, by in found.items()}
    return function(
        "The states that a task passes through to reach `p_to`, one letter each, without its current state; '' if it "
        "is there already, null if there is no path. The path from steps_in_process to itself passes through "
        "evaluation: a result that makes further steps ready takes it.",
        "task_path",
        "p_from text, p_to text",
        "text",
        looked_up({target: by for target, by in ways.items() if by}, "p_to", "p_from"),
    )


def _path_code() -> str:
    return function(
        "The path of one state in the engine's and the history's form: one letter for each state.",
        "path_code",
        "p_path text",
        "text",
        looked_up_once(LETTERS, "p_path"),
    )


def _path_end() -> str:
    return function(
        "The last state of a path.",
        "path_end",
        "p_path text",
        "text",
        looked_up_once({letter: state for state, letter in LETTERS.items()}, "right(p_path, 1)"),
    )


def _path_text() -> str:
    names = [(letter, f"{name}>") for name, letter in _by_length()]
    return function(
        "The path of a row of the history with the names of its states: `pending>enqueued>in_progress`. "
        "The reverse of path_code.",
        "path_text",
        "p_code text",
        "text",
        f"rtrim({_replaced('p_code', names)}, '>')",
    )


def _by_length() -> list[tuple[str, str]]:
    """Longer names first: some hold others."""
    return sorted(LETTERS.items(), key=lambda item: (-len(item[0]), item[0]))


def _replaced(start: str, pairs: list[tuple[str, str]]) -> str:
    calls = start + "".join(f", '{old}', '{new}')" for old, new in pairs)
    return "\n    ".join(("replace(" * 8, "replace(" * (len(pairs) - 8) + calls))


def _path_succeeded() -> str:
    codes = grouped(
        ("".join(LETTERS[state] for state in parking_path(kind)), move.stores_result) for kind, move in REPORTS.items()
    )
    cases = " ".join(  # anywhere: a step that ended in the write of its parents has its whole life in one path
        f"when p_code ~ '{'|'.join(sorted(set(f)))}' then {str(well).lower()}" for well, f in codes.items()
    )
    return function(
        "The kind of a worker's report, by its path in the history: true for a result, false for a failure, null for "
        "neither.",
        "path_succeeded",
        "p_code text",
        "boolean",
        f"case {cases} end",
    )


def _legal_transitions() -> str:
    rows = ",\n".join((*_followers(STEP, StepState), *_followers(TASK, TaskState)))
    return wrapped(
        "-- The states that may follow each state, by kind of subject; `violations_v1` checks the history by it.\n"
        "create or replace function tasker.legal_transitions()\n"
        "returns table (subject text, state text, followers text[])\n"
        f"language sql immutable parallel safe rows 16\nas $$\n  values\n{rows}\n$$;\n"
    )


def _followers(machine: Machine[S, E], states: Iterable[S]) -> Iterator[str]:
    for state in states:
        followers = ", ".join(f"'{target}'" for target in dict.fromkeys(machine.legal(state).values()))
        if followers:
            yield f"    ('{machine.subject}', '{state}', array[{followers}])"


def _groups() -> str:
    return "\n".join(
        function(group.meaning, f"{subject}_is_{name}", "p_state text", "boolean", is_one_of("p_state", group.states))
        for subject, groups in (("step", step.GROUPS), ("task", task.GROUPS))
        for name, group in groups.items()
    )


def _edge_name() -> str:
    names = grouped((str(type_), type_.traits.edge) for type_ in StepType if type_.traits.edge != DEFAULT.traits.edge)
    cases = " ".join(f"when {is_one_of('p_step_type', types)} then '{name}'" for name, types in names.items())
    return function(
        "The name of edges from a step of this type to steps created while the task runs.",
        "edge_name",
        "p_step_type text",
        "text",
        f"case {cases} else '{DEFAULT.traits.edge}' end",
    )


def _creates_steps() -> str:
    types = [str(type_) for type_ in StepType if type_.traits.creates is not Creates.NOTHING]
    return function(
        "True if the result of a step of this type may create steps.",
        "creates_steps",
        "p_step_type text",
        "boolean",
        is_one_of("p_step_type", types),
    )


FILES: Mapping[str, tuple[Callable[[], str], ...]] = {
    "states.sql": (_groups, _legal_transitions),
    "changes.sql": (kinds, places),
    "paths.sql": (_step_path, _task_path, _path_code, _path_end, _path_text, _path_succeeded),
    "step_types.sql": (_creates_steps, _edge_name),
}

if __name__ == "__main__":
    main()
