"""The snippets of docs/messaging.md do what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "messaging.md").read_text("utf-8")


def snippet(language: str) -> str:
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return str(found)


def test_the_suite_of_the_page_runs_and_passes(tmp_path: Path) -> None:
    (tmp_path / "test_pigeon.py").write_text(snippet("python"))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", "/dev/null", "test_pigeon.py"]
    run = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert " passed, 5 skipped" in run.stdout  # transactional, and the four that restart a server


def test_the_entry_point_of_the_page_names_the_group() -> None:
    assert tomllib.loads(snippet("toml"))["project"]["entry-points"]["tasker.backends"]
