"""A recorded case gets a file name under which pytest finds it."""

from __future__ import annotations

from pathlib import Path

from tests.support.command_line import invoke

NOWHERE = "postgresql://nobody@nowhere.invalid/none"


def test_recorded_file_that_pytest_would_not_run_is_refused(tmp_path: Path) -> None:
    result = invoke("task", "record", "0199c1f4-8a52", "-o", str(tmp_path / "case.yaml"), database=NOWHERE)

    assert (result.exit_code, f"-o {tmp_path}/case.scenario.yaml" in result.output) == (2, True), result.output
