"""The SQL that is generated from the tables is what they say today, and no other SQL says it once more."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tasker.engine.states.step import StepState
from tasker.engine.states.step_changes import CHANGES, PLACES
from tasker.engine.states.task import TaskState
from tests.support.tables import for_each
from tools.lifecycle_sql import FILES, FOLDER, HEAD, text

SQL = [
    path
    for folder in ("tasker/db/sql", "backends")
    for path in sorted((FOLDER.parents[4] / folder).rglob("*.sql"))
    if "migrations" not in path.parts
]
STATES = {str(state) for state in (*StepState, *TaskState)}
SCHEMA = FOLDER.parents[1] / "migrations" / "0001_initial.sql"
LETTERS = re.compile(r"""\bstate\s+"char" [^,]*check \(state in \(([^)]*)\)\)""")
"""The states of fan-outs and of their items."""
LIST = re.compile(r"\bin\s*\(\s*('\w+'(?:\s*,\s*'\w+')+)\s*\)")
ONE = re.compile(r"\b(?:(?:v_task|v_step|[stjpicofmz])\.state|(?:to|from)_state)\s*(?:=|<>)\s*'(\w+)'")
PLACE = re.compile(r"\bplace\s*(?:=|<>)\s*'(\w+)'|\bplace\s+in\s*\(([^)]*)\)")
ASKED = re.compile(r"""["']kind\\?["'](?:\] =|:) ?\\?["']([a-z]+)""")
KIND = re.compile(r"\bkind\s*(?:=|<>)\s*'(\w+)'")


def _written(path: Path) -> bool:
    return path.parent == FOLDER and path.name in FILES


@cache
def _letters() -> set[str]:
    return {letter for found in LETTERS.findall(SCHEMA.read_text()) for letter in re.findall(r"\w+", found)}


@for_each(FILES)
def test_the_committed_file_is_current(name: str) -> None:
    assert (FOLDER / name).read_text() == text(name), "run: python -m tools.lifecycle_sql"


def test_what_claims_to_be_generated_is() -> None:
    claiming = {path for path in SQL if path.read_text().startswith(HEAD)}
    assert claiming == {FOLDER / name for name in FILES}


@for_each([path for path in SQL if not _written(path)])
def test_sql_asks_for_groups_of_states_and_kinds_by_their_functions(path: Path) -> None:
    body = re.sub(r"--.*", "", path.read_text())
    lists = [set(re.findall(r"'(\w+)'", found)) for found in LIST.findall(body)]
    assert not [found for found in lists if found <= STATES], "use tasker.step_is_NAME or tasker.task_is_NAME"
    assert not [found for found in lists if found <= set(CHANGES)], "use tasker.kind_FIELD"
    assert not set(CHANGES).intersection(KIND.findall(body)), "use tasker.kind_FIELD"
    assert not re.findall(r"'\w+>\w+'", body), "use tasker.step_path, task_path or placed_path"
    assert set(ONE.findall(body)) <= STATES | _letters()
    assert {word for found in PLACE.findall(body) for word in re.findall(r"\w+", "".join(found))} <= set(PLACES)


def test_python_asks_for_kinds_that_there_are() -> None:
    product = (path.read_text() for path in (FOLDER.parents[3]).rglob("*.py"))
    asked = {kind for source in product for kind in ASKED.findall(source)}
    assert {"reset", "retry", "fail"} <= asked <= set(CHANGES)
