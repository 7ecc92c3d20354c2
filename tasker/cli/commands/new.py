"""`tasker new`: a folder with a workflow that runs, or with a plugin that can be installed."""

from __future__ import annotations

import os
from pathlib import Path
from shlex import quote
from typing import Any

import click

from tasker.cli.connection import FORMAT, print_as
from tasker.version import DISTRIBUTION


@click.command()
@click.argument("name")
@click.argument("plugin", required=False, metavar="")
@click.option(
    "--dir",
    "parent",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Parent directory of the new folder.",
)
@FORMAT
def new(name: str, plugin: str | None, parent: Path, form: str) -> None:
    """Create a workflow: a folder NAME with a commented template, handlers, an input and a test.

    It runs as it is. NAME consists of lower-case letters, digits and underscores. Existing files are never overwritten.

    \b
    Examples:
      tasker new hello
      tasker new billing --dir workflows
      tasker new plugin NAME
    """
    done = _new_workflow(name, parent) if plugin is None else _new_plugin(name, plugin, parent)
    print_as(form, done, _text)


def _new_workflow(name: str, parent: Path) -> dict[str, Any]:
    from tasker.cli.scaffold import write_workflow

    written, folder = write_workflow(name, parent), parent / name
    run = f"tasker run {quote(str(folder))}"
    return _made(folder, written, run, f"{run} --set name=you", _testing(folder))


def _new_plugin(word: str, name: str, parent: Path) -> dict[str, Any]:
    if word != "plugin":
        raise click.UsageError(f"Got unexpected extra argument ({name})")
    from tasker.cli.scaffold.new_plugin import write_plugin

    folder, written = write_plugin(name, parent)
    then = (
        f"pip install {quote(str(folder))}",
        f"tasker plugin show {name}",
        _testing(folder),
    )
    return _made(folder, written, *then)


def _testing(folder: Path) -> str:
    """Return the command that runs the test of the folder.

    In a checkout of Tasker it excludes the settings of Tasker's own tests, which need more than pytest.
    """
    files = (above / "pyproject.toml" for above in folder.resolve().parents)
    nearest = next((file for file in files if file.is_file()), None)
    in_checkout = nearest is not None and f'name = "{DISTRIBUTION}"' in nearest.read_text("utf-8", errors="replace")
    tested = quote(str(folder))
    return f"pytest -c {os.devnull} --rootdir {tested} {tested}" if in_checkout else f"pytest {tested}"


def _made(folder: Path, written: dict[str, str], *then: str) -> dict[str, Any]:
    return {"folder": str(folder), "files": written, "next": then}


def _text(done: dict[str, Any]) -> str:
    width = max(map(len, done["files"]))
    files = [f"{file:<{width}}  {what}" for file, what in done["files"].items()]
    return "\n  ".join((f"made {done['folder']}:", *files)) + "\n" + "\n  ".join(("Next:", *done["next"]))
