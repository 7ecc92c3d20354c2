"""The SQL functions have no numbers of their own for what a caller leaves out: Python gives all arguments."""

from __future__ import annotations

import re
from pathlib import Path

import tasker.db

FUNCTIONS = Path(tasker.db.__file__).parent / "sql" / "functions"
FALLBACK = re.compile(r"coalesce\(\(p_args->>'(\w+)'\)::\w+, (\d\d+)")


def test_sql_functions_have_no_numbers_for_arguments_left_out() -> None:
    found = {
        (file.stem, *match.groups())
        for file in FUNCTIONS.rglob("*.sql")
        for match in FALLBACK.finditer(file.read_text("utf-8"))
    }

    assert found == set()
