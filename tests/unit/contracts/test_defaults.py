"""The SQL functions fall back to the same numbers as the code that calls them."""

from __future__ import annotations

import re
from pathlib import Path

import tasker.db
from tasker.contracts.defaults import ENQUEUE_WINDOW, STEP_GRACE_MS, STEP_TIMEOUT_MS

FUNCTIONS = Path(tasker.db.__file__).parent / "sql" / "functions"
FALLBACK = re.compile(r"p_args->>'(window|timeout_ms|grace_ms)'\)::\w+, (\d+)\)")


def test_what_a_caller_leaves_out_is_the_same_in_sql_as_in_python() -> None:
    found = {
        match.groups() for file in FUNCTIONS.rglob("*.sql") for match in FALLBACK.finditer(file.read_text("utf-8"))
    }

    expected = {"window": ENQUEUE_WINDOW, "timeout_ms": STEP_TIMEOUT_MS, "grace_ms": STEP_GRACE_MS}
    assert found == {(name, str(number)) for name, number in expected.items()}
