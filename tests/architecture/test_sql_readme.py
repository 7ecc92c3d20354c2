"""The list of SQL functions is that of the files."""

from __future__ import annotations

import re

from tools.sql_readme import PUBLISHED, README, SQL, callers, functions, sources, text

LOCK = re.compile(
    r"\bfor (?:no key )?(?:update|share)\b|\bfor key share\b|pg_(?:try_)?advisory|(?<!do )\bupdate tasker\."
)
WIDTH = 110


def test_the_table_of_sql_functions_is_current() -> None:
    assert README.read_text("utf-8") == text(), "run: make generate"


def test_every_function_is_listed_and_every_listed_one_exists() -> None:
    table = README.read_text("utf-8").partition("\n| Function ")[2].partition("\n\n")[0]
    firsts = [line.split("|")[1] for line in table.splitlines()[2:]]
    listed = {name for first in firsts if "**" not in first for name in re.findall(r"\w+", first)}

    created = re.compile(r"^create or replace (?:function|procedure) tasker\.(\w+)", re.MULTILINE)
    files = (SQL / "functions").rglob("*.sql")
    assert listed == {name for file in files for name in created.findall(file.read_text("utf-8"))}


def test_every_contract_has_a_caller_outside_of_sql() -> None:
    known = sources()

    assert [one.name for one in functions() if one.name.endswith("_v1") and not callers(one, known)] == []
    assert all(callers(one, known) for one in functions() if one.folder == "published"), PUBLISHED


def test_a_function_that_locks_rows_says_so() -> None:
    silent = [one.name for one in functions() if LOCK.search(re.sub(r"--.*", "", one.body)) and not one.locks]

    assert silent == []


def test_the_readme_fits_the_width_of_a_screen() -> None:
    assert [line for line in README.read_text("utf-8").splitlines() if len(line) > WIDTH] == []


def test_sql_lines_fit_the_width_of_a_screen() -> None:
    files = [path for path in SQL.rglob("*.sql") if path.parent.name != "migrations"]
    wide = {path.name for path in files for line in path.read_text("utf-8").splitlines() if len(line) > WIDTH}

    assert files
    assert wide == set(), f"wrap these lines at {WIDTH} columns; a migration does not change after its release"
