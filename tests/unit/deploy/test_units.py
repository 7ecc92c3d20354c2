"""systemd takes the units as they are."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.snippets import read_ini
from tests.support.deployed import UNITS, of_systemd

ANALYZE = shutil.which("systemd-analyze")


@pytest.mark.skipif(ANALYZE is None, reason="systemd is not on this machine")
def test_systemd_has_nothing_to_say_of_the_units(tmp_path: Path) -> None:
    for unit in UNITS:
        text = unit.read_text("utf-8").replace("/opt/tasker/bin/tasker", sys.executable)
        (tmp_path / unit.name).write_text(text)
    assert ANALYZE
    files = sorted(tmp_path.iterdir())
    command = [ANALYZE, "verify", "--man=no", "--recursive-errors=no", *files]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, [line for line in ran.stderr.splitlines() if str(tmp_path) in line]) == (0, [])


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_has_a_user_of_its_own_and_its_secrets_from_files(unit: Path) -> None:
    keys = {(key, value) for _, key, value in read_ini(unit.read_text("utf-8"))}
    assert {("DynamicUser", "yes"), ("LoadCredential", "database_url:/etc/tasker/database_url")} <= keys
    loaded = {value.partition(":")[0] for key, value in keys if key == "LoadCredential"}
    used = {value.partition("%d/")[2] for key, value in keys if key == "Environment" and "%d/" in value}
    assert used == loaded


def test_only_the_main_process_is_told_to_end_and_it_starts_again() -> None:
    kept = [process for process in of_systemd() if process.kind != "db"]
    assert len(kept) == 3
    for process in kept:
        (unit,) = [unit for unit in UNITS if unit.name == process.file]
        keys = {(key, value) for _, key, value in read_ini(unit.read_text("utf-8"))}
        assert {("KillMode", "mixed"), ("Restart", "always"), ("ExecReload", "/bin/kill -HUP $MAINPID")} <= keys
