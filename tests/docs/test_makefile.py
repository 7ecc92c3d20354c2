"""The Makefile: every target is listed, and the long tests are bounded, seeded and all run."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import SERVED
from tools.install import start_at_once

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


def test_the_tests_of_servers_are_looked_for_where_they_may_be() -> None:
    command = make("--dry-run", "test-servers").stdout

    assert f'-o testpaths="{" ".join(f"tests/{folder}" for folder in SERVED)}"' in command


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


PIP = """
import sys
if "install" in sys.argv:
    print("Collecting left-pad[extra]>=1.3 (from tasker-engine)", "Collecting httpx", sep="\\n")
    print("Installing collected packages: httpx, left-pad")
print(*sys.argv[1:], file=sys.stderr)
sys.exit("--fail" in sys.argv[-1])
"""


def installed(folder: Path, extras: str) -> subprocess.CompletedProcess[str]:
    """Install with a pip that says what it was told."""
    (folder / "pip").mkdir()
    (folder / "pip" / "__init__.py").touch()
    (folder / "pip" / "__main__.py").write_text(PIP)
    command = [sys.executable, str(ROOT / "tools" / "install.py"), extras]
    return subprocess.run(
        command, env={**os.environ, "PYTHONPATH": str(folder)}, capture_output=True, text=True, check=False
    )


def test_an_installation_shows_that_it_goes_on_and_takes_the_old_name_out(tmp_path: Path) -> None:
    found = installed(tmp_path, "embedded")
    pip = [line.split() for line in found.stderr.splitlines()]

    assert found.returncode == 0
    assert [(line[1], line[-1]) for line in pip] == [("uninstall", "tasker"), ("install", f"{ROOT}[embedded]")]
    assert "looking for left-pad httpx\n  unpacking 2 packages\n" in found.stdout
    assert found.stdout.splitlines()[-1].startswith("installed in ")


def test_an_installation_that_fails_ends_make(tmp_path: Path) -> None:
    found = installed(tmp_path, "--fail")

    assert found.returncode == 1
    assert found.stdout.endswith("not installed\n")


def test_a_first_run_installs_less_than_the_tests_need_and_they_find_it_done(tmp_path: Path) -> None:
    calls, python = tmp_path / "calls", tmp_path / "python"
    python.write_text(f'#!/bin/sh\necho "$@" >> {calls}\n')
    python.chmod(0o755)
    run, tests = tmp_path / "run", tmp_path / "tests"
    names = (f"BIN={tmp_path}", f"STAMP={tests}", f"RUN_STAMP={run}")

    for stamp in (run, tests, run):
        assert make(str(stamp), *names).returncode == 0

    done = [line for line in calls.read_text().splitlines() if line.startswith("tools/install.py")]
    assert done == ["tools/install.py embedded,web", "tools/install.py embedded,web,dev"]


def test_the_commands_import_nothing_before_they_deal_with_ctrl_c(tmp_path: Path) -> None:
    older = "#!/usr/bin/python\n# -*- coding: utf-8 -*-\nimport re\nimport sys\nfrom tasker.__main__ import main\n"
    for name in ("tasker", "other"):
        (tmp_path / name).write_text(older)
    start_at_once(tmp_path)
    assert (tmp_path / "other").read_text() == older
    assert (tmp_path / "tasker").read_text().splitlines()[:2] == older.splitlines()[::4]

    package = ast.parse((ROOT / "tasker" / "__init__.py").read_text())
    entry = ast.parse((ROOT / "tasker" / "__main__.py").read_text())
    imports = [each for each in (*package.body, *entry.body) if isinstance(each, ast.Import | ast.ImportFrom)]
    assert {name.name for each in imports for name in each.names} == {"_signal", "os"}
