"""Everything that a page can be told to do is done by mouse in one of these tests, which name the route it goes to."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from fastapi.routing import APIRoute

from tasker.server.web.pages import SUBJECTS
from tasker.server.web.pages.dead_letters import STEERED
from tasker.server.web.rendering import ROOT

HERE = Path(__file__).parent
SENDING = {"act", "sends"}
ACTIONS = {
    "/dead-letters/replays/{replay}/{action}": [*STEERED],
    "/templates/{namespace}/{name}/{action}": ["pause", "resume"],
}
"""What `{action}` may be."""


def routes() -> Iterator[str]:
    """Where forms are sent to, each action of a route by itself."""
    for subject in SUBJECTS:
        for route in subject.routes.routes:
            if isinstance(route, APIRoute) and "POST" in route.methods:
                path = route.path.removeprefix(ROOT)
                yield from (path.replace("{action}", action) for action in ACTIONS.get(path, [""]))


def named(path: Path) -> Iterator[str]:
    """The routes that a file's tests name where they send something."""
    for each in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(each, ast.Call) and isinstance(each.func, ast.Name) and each.func.id in SENDING:
            texts = (given.value for given in each.args if isinstance(given, ast.Constant))
            yield from (text for text in texts if isinstance(text, str) and text.startswith("/"))


def test_every_form_of_the_pages_is_sent_by_a_test_in_a_browser() -> None:
    sent = {route for path in HERE.glob("test_*.py") for route in named(path)}

    assert sorted({*routes()} ^ sent) == []
