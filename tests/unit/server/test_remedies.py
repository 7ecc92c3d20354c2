"""A hint that reaches an HTTP answer names a request there, and a command at the command line: one source for both."""

from __future__ import annotations

import ast
import json
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasker.errors import TaskNotFound
from tasker.errors.remedies import REQUESTS, command_form, http_form, remedy, see
from tasker.server.errors import problem_of
from tests.support.repository import ROOT

COMMAND = re.compile(
    r"\btasker (?:auth|config|db|dlq|events|orchestrator|pause|plugin|resume|run|task|template|worker)\b"
)
PARTS = ("db", "engine", "messaging", "orchestration", "server", "services")
LOCAL = (
    "db/caller_transaction.py",
    "db/database.py",
    "db/handler_transaction.py",
    "db/roles.py",
    "server/auth/",
    "services/configuration/",
    "services/workflows/served.py",
)
"""Raised at a command line, at the start of a process or of a step, never while a request is answered."""


def hints() -> Iterator[tuple[str, str]]:
    """Each hint of an error that a request may meet, with where it is."""
    for part in PARTS:
        for file in sorted((ROOT / "tasker" / part).rglob("*.py")):
            where = str(file.relative_to(ROOT / "tasker"))
            if where.startswith(LOCAL):
                continue
            for node in ast.walk(ast.parse(Path(file).read_text(encoding="utf-8"))):
                is_hint = isinstance(node, ast.keyword) and node.arg == "hint"
                is_hint |= isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "hint"
                if is_hint and isinstance(node, (ast.keyword, ast.Assign)):
                    yield f"{where}:{node.value.lineno}", ast.unparse(node.value)


def test_hints_of_errors_that_reach_a_request_name_commands_through_one_table() -> None:
    found = dict(hints())
    assert len(found) > 100
    plain = {where: text for where, text in found.items() if COMMAND.search(re.sub(r"\b(see|remedy)\(.*\)", "", text))}
    assert plain == {}


def test_each_request_of_a_remedy_is_a_route() -> None:
    paths = json.loads((ROOT / "docs/reference/openapi.json").read_text(encoding="utf-8"))["paths"]
    for request in REQUESTS.values():
        method, target = request.split(" ")
        assert method.lower() in paths.get(target.partition("?")[0], {}), request


@pytest.mark.parametrize("command", REQUESTS)
def test_remedy_has_both_forms_and_is_read_back(command: str) -> None:
    both = see(command)
    assert (str(both), http_form(both)) == (f"see `{command}`", f"see `{REQUESTS[command]}`")
    assert command_form(http_form(both)) == str(both)
    assert http_form(pickle.loads(pickle.dumps(both))) == http_form(both)


def test_options_of_a_command_are_left_out_of_its_request() -> None:
    both = remedy("first {}", "tasker task list", " --since 10m")
    assert (str(both), both.http) == ("first `tasker task list --since 10m`", "first `GET /v1/tasks`")


def test_answer_of_the_api_names_a_request_and_a_page_a_command() -> None:
    error = TaskNotFound("no such task", hint=see("tasker task list"))
    assert problem_of(error, for_page=False)["hint"] == "see `GET /v1/tasks`"
    assert problem_of(error)["hint"] == "see `tasker task list`"
    assert (http_form(None), command_form(None), http_form("plain")) == (None, None, "plain")
