"""Run pytest, and run the tests that failed once more, alone and in one process.

    python -m tools.second_try REPORT [PYTEST ARGUMENTS]

A test that passes the second time is flaky: it is appended to the file REPORT as `FLAKY name` with both outputs, and
does not fail the run. A test that fails twice does. Nothing is run again when more than `MOST` tests failed, or when
pytest ended for another reason than failed tests.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

MOST = 20
"""More failures than this have one cause, which is not chance."""


class Outcomes:
    """Reports of failed tests and outputs of passed ones, by node id."""

    def __init__(self) -> None:
        self.failures: dict[str, list[str]] = {}
        self.outputs: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Record one phase of a test (setup, call or teardown)."""
        if report.failed:
            self.failures.setdefault(report.nodeid, []).append(f"{report.longreprtext}\n{_sections(report)}")
        elif report.when == "teardown":
            self.outputs[report.nodeid] = _sections(report)


def main(arguments: Sequence[str]) -> int:
    """Run pytest with the arguments behind the report; returns its exit code, 0 where all failures were flaky."""
    report, options = Path(arguments[0]), list(arguments[1:])
    first = Outcomes()
    code = pytest.main(options, plugins=[first])
    if code != pytest.ExitCode.TESTS_FAILED or not 0 < len(first.failures) <= MOST:
        return int(code)
    print(f"\nrunning {len(first.failures)} failed tests once more, alone", flush=True)
    second = Outcomes()
    code = pytest.main([*options, "-n", "0", *first.failures], plugins=[second])
    flaky = [name for name in first.failures if name in second.outputs and name not in second.failures]
    with report.open("a") as file:
        for name in flaky:
            print(f"FLAKY {name}", "--- first run: failed", *first.failures[name], sep="\n", file=file)
            print("--- second run, alone: passed", second.outputs[name], sep="\n", file=file)
    return 0 if len(flaky) == len(first.failures) else int(code) or 1


def _sections(report: pytest.TestReport) -> str:
    """Everything that the test printed and logged."""
    return "\n".join(f"{title}\n{text}" for title, text in report.sections)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
