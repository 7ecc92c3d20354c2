"""Failed tests run once more, alone: flaky ones are reported and pass, the others fail the run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.repository import ROOT

FLAKY = """
from pathlib import Path

def test_passes_the_second_time():
    tried = Path(__file__).with_name("tried")
    print("tried before:", tried.exists())
    if not tried.exists():
        tried.touch()
        raise AssertionError("a race was lost")

def test_passes(): pass
"""
BROKEN = "\ndef test_is_broken(): assert 1 == 2\n"


def second_try(folder: Path, tests: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_some.py").write_text(tests)
    plugins = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "xdist.plugin", "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", "tools.second_try", "report", "-n", "2", "-p", "no:cacheprovider"]
    return subprocess.run(
        command, cwd=folder, env={**os.environ, **plugins}, capture_output=True, text=True, check=False
    )


def test_flaky_test_is_reported_with_both_outputs_and_does_not_fail_the_run(tmp_path: Path) -> None:
    run = second_try(tmp_path, FLAKY)

    report = (tmp_path / "report").read_text()
    assert run.returncode == 0, run.stdout
    assert report.startswith("FLAKY test_some.py::test_passes_the_second_time\n")
    assert "a race was lost" in report
    assert "tried before: False" in report
    assert "tried before: True" in report


@pytest.mark.parametrize("tests", [FLAKY + BROKEN, BROKEN], ids=["beside a flaky one", "alone"])
def test_test_that_fails_twice_fails_the_run(tmp_path: Path, tests: str) -> None:
    run = second_try(tmp_path, tests)

    assert run.returncode == 1, run.stdout
    assert "test_is_broken" not in (tmp_path / "report").read_text()


def test_run_that_ended_for_another_reason_is_not_repeated(tmp_path: Path) -> None:
    run = second_try(tmp_path, "import nothing_of_that_name\n")

    assert run.returncode not in (0, None), run.stdout
    assert not (tmp_path / "report").exists()
