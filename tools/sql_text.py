"""Pieces of generated SQL."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeVar

from tasker.engine.states.step_changes import LETTERS

WIDTH = 110
BREAK = re.compile(r"(?<!:)(?<! and)(?<! else)(?<! then) ")
"""A space at which a long line may be broken: not between a key and its value, or a keyword and its operand."""
T = TypeVar("T")


def function(comment: str, name: str, parameters: str, returns: str, expression: str) -> str:
    """A function of one expression, which the planner can put in place of the call."""
    return wrapped(
        f"-- {comment}\ncreate or replace function tasker.{name}({parameters}) returns {returns}\n"
        f"language sql immutable parallel safe as $$\n  select {expression}\n$$;\n"
    )


def is_one_of(name: str, values: Iterable[str]) -> str:
    """The condition that `name` is one of the values."""
    found = sorted(f"'{value}'" for value in values)
    if not found:
        return "false"
    return f"{name} = {found[0]}" if len(found) == 1 else f"{name} in ({', '.join(found)})"


def looked_up(table: Mapping[str, Mapping[str, str]], outer: str, inner: str) -> str:
    """The entry of a table of two keys; null where there is none. One constant: a case for each entry would be prepared
    anew in each execution of a statement, which costs more than all the rest of it."""
    rows = ",\n    ".join(f'"{key}": {json.dumps(row)}' for key, row in table.items())
    return f"'{{\n    {rows}}}'::jsonb->{outer}->>{inner}"


def looked_up_once(table: Mapping[str, str], key: str) -> str:
    """The same of a table of one key."""
    return f"'{json.dumps(dict(table))}'::jsonb->>{key}"


def grouped(items: Iterable[tuple[str, T]]) -> dict[T, list[str]]:
    """The first parts of pairs by the second, in their order."""
    groups: dict[T, list[str]] = {}
    for name, value in items:
        groups.setdefault(value, []).append(name)
    return groups


def path(states: Iterable[str]) -> str:
    """States as the engine passes them on and the history stores them: a letter for each."""
    return "".join(LETTERS[state] for state in states)


def wrapped(text: str) -> str:
    """The text with its long lines broken at a space; comments and indentation go on."""
    return "\n".join(part for line in text.split("\n") for part in _broken(line))


def _broken(line: str) -> Iterator[str]:
    indent = "-- " if line.startswith("--") else " " * (len(line) - len(line.lstrip()) + 2)
    while len(line) > WIDTH:
        at = [match.start() for match in BREAK.finditer(line, 0, WIDTH)][-1]
        yield line[:at]
        line = indent + line[at + 1 :]
    yield line
