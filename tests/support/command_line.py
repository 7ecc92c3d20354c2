"""The command line in tests: in this process, and as a process that can be interrupted or killed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import dedent
from typing import Any

from click.testing import CliRunner, Result

from tasker.cli.main import cli

HOLDING = """
    import asyncio
    from pathlib import Path

    from tasker.handlers.decorators import step_handler

    FOLDER = Path(__file__).parent


    @step_handler("begin")
    async def begin():
        print("begin was here")
        return {"begun": True}


    @step_handler("hold")
    async def hold():
        if not (FOLDER / "go").exists():
            await asyncio.Event().wait()
        return {"held": True}


    @step_handler("end")
    async def end():
        return {"text": "the end"}
"""
"""Handlers of which `hold` waits for ever, unless there is a file `go` when it starts."""


def invoke(*arguments: str | Path, database: str | None = None, stdin: str | None = None) -> Result:
    """Run `tasker ARGUMENTS` in this process, on that database if one is given."""
    options = ["--database-url", database] if database else []
    return CliRunner().invoke(cli, [*map(str, arguments), *options], input=stdin)


def run_json(*arguments: str | Path, database: str) -> dict[str, Any]:
    """The object that `tasker run ARGUMENTS --json` prints."""
    result = invoke("run", *arguments, "--json", database=database)
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def write_workflow(folder: Path, template: str, handlers: str) -> Path:
    """A folder with a workflow."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "workflow.yaml").write_text(dedent(template), encoding="utf-8")
    (folder / "handlers.py").write_text(dedent(handlers), encoding="utf-8")
    return folder


@dataclass
class Running:
    """A `tasker` process; `lines` is what it has told on standard error so far."""

    process: subprocess.Popen[str]
    lines: list[str]

    @classmethod
    def start(cls, *arguments: str | Path) -> Running:
        """Start `tasker ARGUMENTS`."""
        environment = {name: value for name, value in os.environ.items() if name != "DATABASE_URL"}
        return cls(
            subprocess.Popen(
                [sys.executable, "-m", "tasker", *map(str, arguments)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                encoding="utf-8",
                env=environment,
            ),
            [],
        )

    def wait_for(self, *texts: str) -> str:
        """Read standard error until each text has been told; the line that held the last one."""
        assert self.process.stderr
        missing = set(texts)
        for line in self.process.stderr:
            self.lines.append(line)
            missing -= {text for text in missing if text in line}
            if not missing:
                return line
        code, output = self.end()
        raise AssertionError(f"{missing} was not told; exit code {code}:\n{self.told}{output}")

    def task_uuid(self) -> str:
        """The task that it runs."""
        return self.wait_for("  task ").split()[-1]

    def signal(self, number: int) -> None:
        """Send a signal."""
        self.process.send_signal(number)

    def end(self) -> tuple[int, str]:
        """Wait for its end: exit code and standard output."""
        output, errors = self.process.communicate()
        self.lines += errors.splitlines(keepends=True)
        return self.process.returncode, output

    @property
    def told(self) -> str:
        """Everything that it told."""
        return "".join(self.lines)
