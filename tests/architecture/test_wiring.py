"""An object is complete when it is made: who hears of it is given to its constructor."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from tests.support.repository import ROOT, repository_files

CODE = ("tasker", "backends", "plugins", "compat")
HEARS = re.compile(r"_*(on_\w+|listeners?|observers?|subscribers?)")
"""Names of attributes that hold who is told of something."""


def set_from_outside(tree: ast.AST) -> Iterator[ast.Attribute]:
    """The attributes of that kind that are set on another object than `self`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and HEARS.fullmatch(node.attr):
            own = isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")
            if not own:
                yield node


def test_who_hears_of_an_object_is_not_set_on_it_after_it_was_made() -> None:
    found = [
        f"{path}:{node.lineno}: {ast.unparse(node)}"
        for path in repository_files()
        if path.suffix == ".py" and path.parts[0] in CODE
        for node in set_from_outside(ast.parse((ROOT / path).read_text("utf-8")))
    ]

    assert not found, "give these to the constructor:\n" + "\n".join(found)


def test_a_listener_that_is_set_later_would_be_found() -> None:
    later = "engine.listeners = heard\nself._parts.breaker.on_change, other.wake = tell, None\nself.on_moved = told"

    assert [node.attr for node in set_from_outside(ast.parse(later))] == ["listeners", "on_change"]
