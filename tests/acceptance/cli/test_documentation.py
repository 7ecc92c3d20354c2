"""Every command in the documentation of the command line, the tutorial and the example workflows runs as it says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.acceptance.examples.workflow_case import WORKFLOWS
from tests.support.command_line import invoke

DOCS = WORKFLOWS.parent / "docs"
FAILS = ("fails", "permanent failure", "no retry", "insufficient_funds")
REFUSED = ("refused before it starts",)


def commands(file: Path) -> list[str]:
    """The commands in a file, without the prompt and the program's name."""
    return re.findall(r"^\$ tasker (.*)$", file.read_text(encoding="utf-8"), re.MULTILINE)


def examples() -> Iterator[tuple[str, str]]:
    for file in sorted(WORKFLOWS.glob("*/README.md")):
        yield from ((file.parent.name, command) for command in commands(file))


def promised(command: str) -> int:
    """The exit code, by what the comment says about the run."""
    comment = command.partition("   #")[2] or command.partition(" #")[2]
    if any(word in comment for word in REFUSED):
        return 2
    return 1 if any(word in comment for word in FAILS) else 0


@pytest.mark.parametrize(("folder", "command"), list(examples()), ids=lambda value: value[:60])
def test_a_command_of_an_example_ends_as_its_comment_says(
    folder: str, command: str, module_database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(WORKFLOWS.parent)

    template = next(yaml.safe_load_all((WORKFLOWS / folder / "workflow.yaml").read_text("utf-8")))
    environment = ("--env", "test") if command.startswith("run ") and "test" in template.get("environments", {}) else ()
    database = None if command.startswith("simulate ") else module_database_url  # `simulate` takes none
    result = invoke(*shlex.split(command, comments=True), *environment, database=database)

    assert result.exit_code == promised(command), result.output


def test_the_page_on_the_command_line_can_be_followed(
    database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", database_url)
    followed = commands(DOCS / "cli.md")

    results = {command: invoke(*shlex.split(command)) for command in followed}

    assert len(followed) > 8
    assert {command: result.output for command, result in results.items() if result.exit_code} == {}


PARTS = re.compile(
    r"^```\w+\n# (?P<file>\S+)\n(?P<body>.*?)^```"  # a file that the reader writes
    r"|^\$ (?P<command>.*?)$"
    r"|^`tasker (?P<aside>run [^`]*)`",
    re.DOTALL | re.MULTILINE,
)


@pytest.mark.slow
def test_the_tutorial_can_be_followed(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DATABASE_URL", database_url)
    outputs: dict[str, tuple[int, str]] = {}

    for part in PARTS.finditer((DOCS / "tutorial.md").read_text(encoding="utf-8")):
        if part["file"]:
            file = tmp_path / part["file"]
            file.parent.mkdir(exist_ok=True)
            file.write_text(part["body"], encoding="utf-8")
            continue
        command = part["command"] or f"tasker {part['aside']}"
        outputs.setdefault(command, follow(command))

    assert {command: code for command, (code, _) in outputs.items() if code} == {
        "tasker run greeting --set name=nobody": 1,
        "tasker run greeting --set nmae=world": 2,
        "tasker run trip --set full=hotel": 1,
    }
    assert '{"text": "Hello, world!"}' in outputs["tasker run greeting --set name=world"][1]
    assert "choose_words: ✔ complete  attempt 3/3" in outputs["tasker run greeting --set name=world --set busy=2"][1]
    assert '{"text": "arrives in 5 days"}' in outputs["tasker run parcel --set kilometres=300"][1]
    assert '{"text": "arrives in 2 days"}' in outputs["tasker run parcel --set kilometres=9000"][1]
    assert "if hotel fails, undone: flight" in outputs["tasker simulate trip --explore"][1]
    assert "its effects are undone" in outputs["tasker run trip --set full=hotel"][1]
    assert "tasker task rerun" in outputs["tasker run trip --set full=hotel"][1]


def follow(command: str) -> tuple[int, str]:
    """Exit code and output of a command of the tutorial."""
    program, *arguments = shlex.split(command)
    if program == "tasker":
        result = invoke(*arguments)
        return result.exit_code, result.output
    assert program == "python"
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr
