"""`tasker new`: what it writes, and what it refuses."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tasker.cli.run.checks import RunRequest, prepare_order
from tests.support.command_line import invoke

FILES = ["handlers.py", "hello.scenario.yaml", "input.json", "test_hello.py", "workflow.yaml"]


def test_it_makes_a_folder_and_says_what_to_do_next(tmp_path: Path) -> None:
    result = invoke("new", "hello", "--dir", tmp_path)

    assert result.exit_code == 0, result.output
    assert sorted(file.name for file in (tmp_path / "hello").iterdir()) == FILES
    assert f"tasker run {tmp_path}/hello\n" in result.stdout
    assert f"pytest {tmp_path}/hello\n" in result.stdout


def test_commands_to_do_next_are_quoted_for_a_shell(tmp_path: Path) -> None:
    parent = tmp_path / "my work's"

    made = invoke("new", "hello", "--dir", parent)
    plugin = invoke("new", "plugin", "night_bell", "--dir", parent)

    lines = "\n".join(result.stdout.partition("Next:")[2] for result in (made, plugin)).splitlines()
    folder, package = str(parent / "hello"), str(parent / "tasker-night-bell")
    assert [shlex.split(line) for line in lines if line.strip()] == [
        ["tasker", "run", folder],
        ["tasker", "run", folder, "--set", "name=you"],
        ["pytest", folder],
        ["pip", "install", package],
        ["tasker", "plugin", "show", "night_bell"],
        ["pytest", package],
    ]


def test_what_it_makes_is_valid_and_fits_together(tmp_path: Path) -> None:
    invoke("new", "hello", "--dir", tmp_path)

    prepared = prepare_order(RunRequest(str(tmp_path / "hello")))
    assert prepared.plan
    assert [step.name for step in prepared.plan.steps] == ["choose_words", "decorate", "greet"]
    assert invoke("template", "validate", tmp_path / "hello", "--handlers", tmp_path / "hello").output == ""


def test_every_key_of_the_template_is_explained(tmp_path: Path) -> None:
    invoke("new", "hello", "--dir", tmp_path)

    text = (tmp_path / "hello" / "workflow.yaml").read_text(encoding="utf-8")
    assert text.count("#") >= 10
    assert "@NAME@" not in "".join(file.read_text(encoding="utf-8") for file in (tmp_path / "hello").iterdir())


def test_the_test_command_in_a_checkout_leaves_out_the_settings_of_its_own_tests(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "tasker-engine"\n[tool.pytest.ini_options]\naddopts = ["--strict-config"]\nunknown = 1\n'
    )
    made = invoke("new", "hello", "--dir", tmp_path / "mine")
    command = made.stdout.splitlines()[-1].split()
    assert command[0] == "pytest"
    ran = subprocess.run([sys.executable, "-m", *command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "hello").mkdir()

    result = invoke("new", "hello", "--dir", tmp_path)

    assert result.exit_code == 2
    assert "hello already exists; nothing was written" in result.stderr
    assert list((tmp_path / "hello").iterdir()) == []


@pytest.mark.parametrize(
    ("name", "hint"),
    [("Hello-World", "try hello_world"), ("a/b", "try b with --dir"), ("class", ""), ("1st", ""), ("", "")],
)
def test_a_name_that_python_cannot_import_is_refused(name: str, hint: str, tmp_path: Path) -> None:
    result = invoke("new", name, "--dir", tmp_path)

    assert result.exit_code == 2
    assert "is not a valid name of a workflow" in result.stderr
    assert hint in result.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_the_test_that_it_writes_passes(tmp_path: Path) -> None:
    invoke("new", "hello", "--dir", tmp_path)

    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path / "hello")]
    without = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # as for whoever has installed Tasker and pytest
    found = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=without)

    assert "3 passed" in found.stdout, found.stdout


def test_a_plugin_is_made_in_a_folder_of_its_own_and_nothing_is_overwritten(tmp_path: Path) -> None:
    made = invoke("new", "plugin", "night_bell", "--dir", tmp_path)
    assert made.exit_code == 0, made.output
    folder = tmp_path / "tasker-night-bell"
    files = ["README.md", "pyproject.toml", "tasker_night_bell/__init__.py", "test_night_bell.py"]
    assert sorted(str(file.relative_to(folder)) for file in folder.rglob("*") if file.is_file()) == files
    assert not [file for file in files if "NAME@" in (folder / file).read_text()]
    assert "already exists; nothing was written" in invoke("new", "plugin", "night_bell", "--dir", tmp_path).output
    assert "'a-b' is not a valid name of a plugin" in invoke("new", "plugin", "a-b", "--dir", tmp_path).output
    assert invoke("new", "hello", "world", "--dir", tmp_path).exit_code == 2
