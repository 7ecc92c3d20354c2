"""No traceback reaches a user: interrupted while it is imported, output on a full disk, closed streams."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command_line import write_workflow

INTERRUPTING = """
import os, runpy, signal, sys
class Finder:
    def find_spec(self, name, *rest):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Finder())
sys.argv = ["tasker", *{arguments!r}]
runpy.run_module("tasker", run_name="__main__", alter_sys=True)
"""
TEMPLATE = """
name: quick
namespace: streams
version: 1.0.0
steps:
  - {name: only, handler: only}
"""
HANDLERS = """
from tasker.step_handler import step_handler

@step_handler("only")
async def only():
    return {"done": True}
"""


@pytest.fixture
def workflow(tmp_path: Path) -> Path:
    return write_workflow(tmp_path / "quick", TEMPLATE, HANDLERS)


@pytest.mark.parametrize(
    ("module", "command"),
    [
        ("tasker.cli.main", "run"),
        ("click", "run"),
        ("tasker.cli.run.command", "run"),
        ("tasker.process.runtime", "run"),
        ("tasker.cli.commands.worker", "worker"),
        ("tasker.app.serving", "worker"),
        ("tasker.db.migrate", "worker"),
        ("tasker.db.startup_wait", "worker"),
    ],
)
def test_an_interruption_while_something_is_imported_ends_with_130_and_no_traceback(
    module: str, command: str, workflow: Path, database_url: str
) -> None:
    arguments = [command, str(workflow), "--database-url", database_url]
    arguments += ["--no-config"] if command == "worker" else []
    code = INTERRUPTING.format(module=module, arguments=arguments)
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)

    assert ended.returncode == 130, ended.stderr
    assert "Traceback" not in ended.stderr
    assert len(ended.stderr.splitlines()) <= 1


def test_nothing_is_imported_before_an_interruption_is_dealt_with() -> None:
    """Python's own start is all that may still end in a traceback."""
    code = "import sys; known = {*sys.modules}; import tasker.__main__; print(*sorted({*sys.modules} - known))"
    imported = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {*imported} <= {"__future__", "tasker", "tasker.__main__"}


FULL, CLOSED = "> /dev/full", ">&-"


@pytest.mark.parametrize("stream", [FULL, CLOSED])
@pytest.mark.parametrize(
    "command",
    ["--help", "run {workflow}", "run {workflow} --json", "task list"],
)
def test_output_that_cannot_be_written_is_one_line_and_an_exit_code(
    command: str, stream: str, workflow: Path, tmp_path: Path, database_url: str
) -> None:
    line = command.format(workflow=workflow)
    environment = {**os.environ, "DATABASE_URL": database_url}
    ended = subprocess.run(
        ["sh", "-c", f'"$0" -m tasker {line} {stream}', sys.executable],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        cwd=tmp_path,
        env=environment,
    )

    assert ended.returncode == 1, ended.stderr
    assert "Traceback" not in ended.stderr
    assert "Exception ignored" not in ended.stderr
    why = "No space left on device" if stream == FULL else "Bad file descriptor"
    assert [line for line in ended.stderr.splitlines() if line.startswith("Error")] == [
        f"Error: cannot write the output: {why}"
    ]
    assert ("To resume it or see its result: tasker run --resume" in ended.stderr) == (command == "run {workflow}")
