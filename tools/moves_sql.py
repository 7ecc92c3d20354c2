"""The SQL of the table of moves: what a kind of change does, and where a ready step goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from tasker.engine.states.step_changes import CHANGES, LETTERS, PLACES, Attempts, StepChangeKind, Token, parking_path
from tools.sql_text import function, grouped, is_one_of, path

REPORTS = {kind: move for kind, move in CHANGES.items() if move.reports}
FLAGS = [field.name for field in fields(StepChangeKind) if field.type == "bool"]
"""The fields that are True or False; each is a function."""


def kinds() -> str:
    """What becomes of token and attempts, how a report is parked, and each field that is True or False."""
    attempts = _attempts("kind_attempts", "p_kind", CHANGES)
    return "\n".join((_was_accepted(), _kind_token(), attempts, _parking_path(), *map(_flag, FLAGS)))


def _was_accepted() -> str:
    states = grouped((kind, move.accepted_in) for kind, move in CHANGES.items() if move.accepted_in)
    return function(
        "True if a change with the token of the claim was accepted before, by the state that the step has now.",
        "kind_was_accepted",
        "p_kind text, p_state text",
        "boolean",
        "\n    or ".join(
            f"{is_one_of('p_kind', kinds)} and {is_one_of('p_state', group)}" for group, kinds in states.items()
        ),
    )


def _kind_token() -> str:
    kept, unless_lost = (
        is_one_of("p_kind", (kind for kind, move in CHANGES.items() if move.token is token))
        for token in (Token.UNCHANGED, Token.GROWS_WHEN_LOST)
    )
    return function(
        "The fencing token of claims after a change.",
        "kind_token",
        "p_kind text, p_token bigint, p_lost boolean",
        "bigint",
        f"p_token + case when {kept} or {unless_lost} and not p_lost then 0 else 1 end",
    )


_AFTERWARDS = {
    Attempts.COUNTED: "least(p_attempts, 2147483646) + 1",
    Attempts.RETURNED: "p_attempts - 1",
    Attempts.RESET: "0",
}


def _attempts(name: str, parameter: str, moves: Mapping[str, StepChangeKind]) -> str:
    groups = grouped((kind, move.attempts) for kind, move in moves.items() if move.attempts in _AFTERWARDS)
    cases = " ".join(f"when {is_one_of(parameter, kinds)} then {_AFTERWARDS[what]}" for what, kinds in groups.items())
    return function(
        "The number of attempts after the change.",
        name,
        f"{parameter} text, p_attempts int",
        "int",
        f"case {cases} else p_attempts end",
    )


def _parking_path() -> str:
    paths = grouped((kind, path(parking_path(kind))) for kind in REPORTS)
    cases = "\n    ".join(f"when {is_one_of('p_kind', kinds)} then '{way}'" for way, kinds in paths.items())
    return function(
        "The path of a step whose worker parks its report for an orchestrator; null for other changes.",
        "parking_path",
        "p_kind text",
        "text",
        f"case {cases} end",
    )


def _flag(name: str) -> str:
    return function(
        f"True for the kinds of change marked in the table as `{name}`.",
        f"kind_{name}",
        "p_kind text",
        "boolean",
        is_one_of("p_kind", (kind for kind, move in CHANGES.items() if getattr(move, name))),
    )


def places() -> str:
    """Path, state, token and attempts of a step at its place."""
    attempts = _attempts("place_attempts", "p_place", PLACES)
    return "\n".join((_placed_path(), _place_state(), _place_token(), attempts))


def _placed_path() -> str:
    cases = "\n    ".join(_appended(place, move) for place, move in PLACES.items() if _moves(move))
    return function(
        "The path of a step to this place, continued from the path that made it ready.",
        "placed_path",
        "p_path text, p_place text",
        "text",
        f"p_path || case p_place\n    {cases}\n    else '' end",
    )


def _moves(move: StepChangeKind) -> bool:
    return any(len(states) > 1 for states in move.paths)


def _appended(place: str, move: StepChangeKind) -> str:
    """A path that ends in a later state of the way goes on from there."""
    first, *others = sorted(move.paths, key=len, reverse=True)
    cases = "".join(f" when p_path like '%{LETTERS[states[0]]}' then '{_rest(states)}'" for states in others)
    rest = f"'{_rest(first)}'"
    return f"when '{place}' then " + (f"case{cases} else {rest} end" if cases else rest)


def _rest(states: tuple[str, ...]) -> str:
    return path(states[1:])


def _place_state() -> str:
    cases = " ".join(f"when '{place}' then '{move.paths[0][-1]}'" for place, move in PLACES.items() if _moves(move))
    return function(
        "The state of a step at this place; null if its state does not change.",
        "place_state",
        "p_place text",
        "text",
        f"case p_place {cases} end",
    )


def _place_token() -> str:
    grows = is_one_of("p_place", (place for place, move in PLACES.items() if move.token is Token.GROWS))
    return function(
        "The fencing token of claims of a step at this place.",
        "place_token",
        "p_place text, p_token bigint",
        "bigint",
        f"p_token + case when {grows} then 1 else 0 end",
    )
