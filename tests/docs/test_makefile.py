"""The Makefile: every target is listed, and the long tests are bounded, seeded and all run."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYTEST = """#!/bin/sh
echo "$TASKER_CHAOS_SEED $@" >> {calls}
case "$*" in *{fails}*) exit 1;; esac
"""


def make(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    plain = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
    return subprocess.run(
        ["make", *arguments], cwd=ROOT, env={**plain, **environment}, capture_output=True, text=True, check=False
    )


def test_help_lists_every_target() -> None:
    targets = re.findall(r"^\.PHONY: (.+)$", (ROOT / "Makefile").read_text("utf-8"), re.M)[0].split()
    listed = re.findall(r"^  make (\S+)", make("help").stdout, re.M)

    assert sorted(listed) == sorted(targets)
    assert "test-chaos" in listed


@pytest.mark.parametrize("fails", ["tests/chaos", "tests/acceptance", "nothing"])
def test_both_parts_of_the_long_tests_run_with_the_seed_and_any_failure_is_one(tmp_path: Path, fails: str) -> None:
    calls, program = tmp_path / "calls", tmp_path / "pytest"
    program.write_text(PYTEST.format(calls=calls, fails=fails))
    program.chmod(0o755)
    (tmp_path / "stamp").touch()

    found = make("test-chaos", f"BIN={tmp_path}", f"STAMP={tmp_path / 'stamp'}", "ARGS=-x", TASKER_CHAOS_SEED="7")

    assert (found.returncode == 0) == (fails == "nothing"), found.stderr
    parts = calls.read_text().splitlines()
    assert [(line.split()[0], line.split()[-2:]) for line in parts] == [
        ("7", ["tests/chaos", "-x"]),
        ("7", ["tests/acceptance", "-x"]),
    ]


def test_the_long_tests_end_within_twenty_minutes() -> None:
    (recipe,) = re.findall(r"^test-chaos:.*\n((?:\t.*\n)+)", (ROOT / "Makefile").read_text("utf-8"), re.M)
    bounds = [int(bound) for bound in re.findall(r"bounded,(\d+)|began \+ (\d+)", recipe) for bound in bound if bound]

    assert len(bounds) == 2
    assert bounds[0] < bounds[1] <= 1200
    assert "timeout" in make("-n", "test-chaos").stdout
