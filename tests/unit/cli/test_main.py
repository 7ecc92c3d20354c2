"""The command line's frame: finding commands, showing errors."""

from __future__ import annotations

import errno
import json
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from tasker import __version__
from tasker.cli import main
from tasker.errors import DatabaseUnavailable, PlanUnreadable, TaskerError, TemplateError, UsageError


def fail_with(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    @click.command()
    def broken() -> None:
        raise error

    monkeypatch.setattr(main.TaskerGroup, "get_command", lambda self, ctx, name: broken)


@pytest.mark.parametrize(
    ("error", "exit_code"),
    [
        (TaskerError("it broke", hint="mend it"), 1),
        (PlanUnreadable("it broke", hint="mend it"), 1),
        (UsageError("it broke", hint="mend it"), 2),
        (TemplateError("it broke", hint="mend it"), 2),
    ],
)
def test_an_error_is_a_message_with_a_hint(error: TaskerError, exit_code: int, monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(error, monkeypatch)

    result = CliRunner().invoke(main.cli, ["run"])

    assert result.exit_code == exit_code
    assert result.stderr == "Error: it broke\nHint: mend it\n"


def test_debugging_keeps_the_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(DatabaseUnavailable("it broke"), monkeypatch)
    monkeypatch.setenv("TASKER_DEBUG", "1")

    assert isinstance(CliRunner().invoke(main.cli, ["run"]).exception, DatabaseUnavailable)


def test_a_path_that_the_system_refuses_is_a_mistake_and_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(PermissionError(errno.EACCES, "Permission denied", "/root/x"), monkeypatch)

    result = CliRunner().invoke(main.cli, ["run"])

    assert result.exit_code == 2
    assert result.stderr.startswith("Error: /root/x cannot be used: Permission denied\nHint: ")


def test_a_path_that_is_too_long_is_a_mistake_and_no_traceback() -> None:
    result = CliRunner().invoke(main.cli, ["run", "x" * 300])

    assert result.exit_code == 2
    assert "cannot be used: File name too long" in result.stderr


@pytest.mark.parametrize("typed", [["run", "--json"], ["run", "--format", "json"]])
def test_a_refused_path_is_an_object_where_json_is_asked_for(typed: list[str]) -> None:
    result = CliRunner().invoke(main.cli, [*typed, "x" * 300])

    assert "File name too long" in json.loads(result.stdout)["error"]["message"]


def test_an_error_of_the_system_that_names_no_path_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(OSError(errno.EMFILE, "Too many open files"), monkeypatch)

    assert isinstance(CliRunner().invoke(main.cli, ["run"]).exception, OSError)


def test_an_interrupted_command_exits_with_130(monkeypatch: pytest.MonkeyPatch) -> None:
    fail_with(KeyboardInterrupt(), monkeypatch)

    result = CliRunner().invoke(main.cli, ["run"])

    assert (result.exit_code, result.stderr) == (130, "Interrupted.\n")


def test_help_lists_every_command_without_importing_one() -> None:
    code = (
        "import sys; from click.testing import CliRunner; from tasker.cli.main import cli; "
        "print(CliRunner().invoke(cli, ['--help']).output); "
        "print(sorted(name for name in sys.modules if name.startswith(('tasker.cli.', 'importlib.metadata'))))"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert all(f"\n  {name} " in output for name in main.COMMANDS)
    assert output.rstrip().endswith("['tasker.cli.loading', 'tasker.cli.main', 'tasker.cli.suggestions']")


def test_every_command_in_the_table_exists() -> None:
    context = click.Context(main.cli)

    for name in main.COMMANDS:
        assert isinstance(main.cli.get_command(context, name), click.Command), name


def test_an_unknown_command_is_a_usage_error() -> None:
    result = CliRunner().invoke(main.cli, ["nonsense"])

    assert result.exit_code == 2
    assert "No such command 'nonsense'" in result.stderr


@pytest.mark.parametrize("program", ["tasker", "tasker-ctl"])
def test_both_programs_are_installed(program: str) -> None:
    path = Path(sys.executable).with_name(program)

    assert subprocess.run([path, "--version"], capture_output=True, text=True).stdout == f"tasker {__version__}\n"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell: str) -> None:
    result = CliRunner().invoke(main.cli, ["completion", shell])

    assert result.exit_code == 0
    assert "_TASKER_COMPLETE" in result.output


def test_the_sql_of_the_schema_needs_no_database() -> None:
    result = CliRunner().invoke(main.cli, ["db", "sql"])

    assert result.exit_code == 0, result.output
    assert "create table tasker.tasks" in result.output
    assert "insert into tasker.schema_scripts" in result.output


def test_an_unknown_backend_is_named() -> None:
    result = CliRunner().invoke(main.cli, ["db", "sql", "--backend", "pigeon"])

    assert result.exit_code == 1
    assert "no messaging backend 'pigeon'" in result.stderr
    assert json.dumps(result.stdout) == '""'


@pytest.mark.parametrize(
    ("chosen", "kept"), [("700, 10, 10", (2000, 10, 10)), ("0", (0, 10, 10)), ("9000", (9000, 10, 10))]
)
def test_a_command_looks_for_circles_of_objects_rarely_unless_somebody_has_chosen(
    chosen: str, kept: tuple[int, ...]
) -> None:
    code = f"import atexit, gc; gc.set_threshold({chosen}); atexit.register(lambda: print(gc.get_threshold())); "
    code += "import sys, tasker.__main__; sys.argv = ['tasker', '--version']; tasker.__main__.main()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == str(kept)
