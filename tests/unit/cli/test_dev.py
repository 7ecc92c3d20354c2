"""Which files `tasker dev` looks at."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tasker.cli.commands.dev import _Child, _stamps
from tests.support.command_line import invoke
from tests.support.waiting import until


def test_the_files_of_a_project_are_watched_and_not_what_is_installed_in_it(tmp_path: Path) -> None:
    ours = ["workflow.yaml", "handlers.py", "shop/deep/handlers.py", "shop/prices.json"]
    others = [".venv/lib/x.py", ".git/config.toml", "node_modules/a/package.json", "venv/x.py", "notes.txt"]
    for name in [*ours, *others]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    assert set(_stamps([tmp_path])) == {tmp_path / name for name in ours}


def test_a_file_that_is_named_is_watched_wherever_it_is(tmp_path: Path) -> None:
    file = tmp_path / ".hidden" / "workflow.yaml"
    file.parent.mkdir()
    file.touch()

    assert set(_stamps([file])) == {file}


def test_a_file_that_goes_while_it_is_looked_at_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "gone.yaml").symlink_to(tmp_path / "nowhere.yaml")

    assert _stamps([tmp_path, tmp_path / "missing.yaml"]) == {}


@pytest.mark.parametrize(
    ("text", "says"), [("[worker]\nlease_sm = 1\n", "lease_sm"), (None, "nowhere.toml")], ids=["invalid", "missing"]
)
def test_a_configuration_that_cannot_be_used_stops_dev(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None, says: str
) -> None:
    file = tmp_path / ("nowhere.toml" if text is None else "tasker.toml")
    if text is not None:
        file.write_text(text)
    monkeypatch.setenv("TASKER_CONFIG_PATH", str(file))
    (tmp_path / "workflow.yaml").touch()

    refused = invoke("dev", tmp_path)

    assert (refused.exit_code != 0, says in refused.stderr) == (True, True), refused.output


def test_a_worker_that_ends_with_a_mistake_is_told_of_once() -> None:
    child = _Child([sys.executable, "-c", "raise SystemExit(2)"])

    until(child.has_given_up, "the process has ended")

    assert not child.has_given_up()
    assert not child.was_killed()
    child.stop()
