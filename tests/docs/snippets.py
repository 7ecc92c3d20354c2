"""The snippets of a page, and following the page from top to bottom as a reader would.

| block | what is done with it |
|---|---|
| yaml, python with a first line `# path/file` | written to that file; a template is compiled, too |
| yaml | compiled as a template; with a first line `# fragment` or `# compose.yaml` it must be YAML |
| python | run; all blocks of a page share their names; `await` is allowed at the top level, as in a notebook |
| console | each `$ tasker ...` and `$ python ...` is run and must exit with 0, or with N after a comment `# exit N` |
| sql | run |
| json, toml, ini | read |
| sh, text, mermaid, no language | nothing |
"""

from __future__ import annotations

import ast
import asyncio
import configparser
import inspect
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from textwrap import dedent
from types import CodeType
from typing import Any

import psycopg
import sqlalchemy
import yaml

import tasker
from tasker.template import compile_text
from tasker.template.report import render_text
from tests.support.command_line import invoke

BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```", re.DOTALL | re.MULTILINE)
NAMED = re.compile(r"# ([\w.-]+(?:/[\w.-]+)*\.\w+)\n")
SHOWN_ONLY = ("sh", "text", "mermaid", "")


@dataclass(frozen=True)
class Snippet:
    """A fenced block; `line` is where it begins in its page."""

    language: str
    text: str
    line: int

    @property
    def file(self) -> str | None:
        """The file that its first line names."""
        found = NAMED.match(self.text)
        return found[1] if found else None


def snippets(page: str) -> list[Snippet]:
    return [
        Snippet(found[2], dedent(found[3]), page.count("\n", 0, found.start()) + 1) for found in BLOCK.finditer(page)
    ]


def write_files(page: str, folder: Path) -> Path:
    """Write the blocks of a page whose first line names a file below `folder`, which is returned."""
    for snippet in snippets(page):
        first, _, _ = snippet.text.partition("\n")
        if first.startswith("# "):
            file = folder / first.removeprefix("# ")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(snippet.text, encoding="utf-8")
    return folder


def read_ini(text: str) -> list[tuple[str, str, str]]:
    """Section, key and value of each line; keys may be repeated, as systemd has it. Raises `configparser.Error`."""
    numbered = re.sub(r"^(\w+)=", lambda found: f"{found[1]}.{found.start()}=", text, flags=re.MULTILINE)
    parser = configparser.ConfigParser(interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # keep upper case
    parser.read_string(numbered)
    return [(name, key.rpartition(".")[0], value) for name in parser.sections() for key, value in parser[name].items()]


@dataclass
class Reader:
    """Somebody who follows a page in a folder of their own, on that database."""

    folder: Path
    database_url: str
    names: dict[str, Any] = field(default_factory=lambda: {"__name__": "page"})
    outputs: dict[str, str] = field(default_factory=dict)
    """What each command printed."""

    def follow(self, page: str) -> None:
        """Do everything that the page says. A snippet that fails raises, its place in the note."""
        for snippet in snippets(page):
            try:
                self.do(snippet)
            except BaseException as error:
                error.add_note(f"in the {snippet.language} block of line {snippet.line}")
                raise

    def do(self, snippet: Snippet) -> None:
        """Do what one snippet says."""
        ways: dict[str, Callable[[Snippet], None]] = {
            "yaml": self._yaml,
            "python": self._python,
            "console": self._console,
            "sql": self._sql,
            "json": lambda block: json.loads(block.text),
            "toml": lambda block: tomllib.loads(block.text) and None,
            "ini": lambda block: read_ini(block.text) and None,
            **dict.fromkeys(SHOWN_ONLY, lambda block: None),
        }
        assert snippet.language in ways, f"nobody knows what to do with a {snippet.language} block"
        ways[snippet.language](snippet)

    def close(self) -> None:
        """Close the database engines that the page has made."""
        for made in self.names.values():
            if isinstance(made, sqlalchemy.Engine):
                made.dispose()

    def _write(self, snippet: Snippet) -> None:
        path = self.folder / (snippet.file or "")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(snippet.text, encoding="utf-8")

    def _yaml(self, snippet: Snippet) -> None:
        if snippet.text.startswith(("# fragment\n", "# compose.yaml\n")):
            assert yaml.safe_load(snippet.text)
            return
        if snippet.file and snippet.file.endswith(".scenario.yaml"):
            self._write(snippet)
            return
        result = compile_text(snippet.text)
        problems = render_text(result.diagnostics, result.sources)
        assert not problems, problems
        if snippet.file:
            self._write(snippet)

    def _python(self, snippet: Snippet) -> None:
        if snippet.file:
            self._write(snippet)
            return
        code: CodeType = compile(snippet.text, "page", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        ended = eval(code, self.names)
        if inspect.iscoroutine(ended):
            asyncio.run(self._finish(ended))

    async def _finish(self, cell: Coroutine[Any, Any, None]) -> None:
        """Await what a block with `await` came to."""
        await cell

    def _console(self, snippet: Snippet) -> None:
        for line in snippet.text.splitlines():
            if line.startswith("$ "):
                self._command(line[2:])

    def _command(self, line: str) -> None:
        program, *arguments = shlex.split(line, comments=True)
        promised = re.search(r"# exit (\d+)$", line)
        code, output = self._run(program, arguments)
        assert code == (int(promised[1]) if promised else 0), f"{line}\n{output}"
        self.outputs[line] = output

    def _run(self, program: str, arguments: list[str]) -> tuple[int, str]:
        if program == "tasker":
            result = invoke(*arguments)
            return result.exit_code, result.output
        assert program == "python", f"a page may run tasker and python, not {program}"
        done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def _sql(self, snippet: Snippet) -> None:
        with psycopg.connect(self.database_url) as connection:
            connection.execute(snippet.text.encode())


@dataclass
class ReaderWithApp(Reader):
    """Somebody whose program has an `app` already, in which these templates are registered."""

    templates: str = ""

    async def _finish(self, cell: Coroutine[Any, Any, None]) -> None:
        self.names["App"] = tasker.App
        async with tasker.App(work=False) as self.names["app"]:
            for plan in compile_text(self.templates).plans:
                await self.names["app"].plans.register(plan)
            await cell
