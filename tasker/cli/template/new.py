"""`tasker new`: a folder with a workflow that runs, or with a plugin that can be installed."""

from __future__ import annotations

from pathlib import Path

import click

from tasker.cli.render.values import echo


@click.command()
@click.argument("name")
@click.argument("plugin", required=False, metavar="")
@click.option(
    "--dir",
    "parent",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Where to make the folder.",
)
def new(name: str, plugin: str | None, parent: Path) -> None:
    """Start a workflow: a folder NAME with a commented template, handlers, an input and a test.

    It runs as it is. NAME is made of small letters, digits and underscores. Nothing is ever overwritten.

    \b
    Examples:
      tasker new hello
      tasker new billing --dir workflows
      tasker new plugin NAME
    """
    if plugin is not None:
        _new_plugin(name, plugin, parent)
        return
    from tasker.services.scaffold import write_workflow

    written = write_workflow(name, parent)
    folder = parent / name
    _show(folder, written)
    echo(f"Next:\n  tasker run {folder}\n  tasker run {folder} --set name=you\n  pytest {folder}")


def _new_plugin(word: str, name: str, parent: Path) -> None:
    if word != "plugin":
        raise click.UsageError(f"Got unexpected extra argument ({name})")
    from tasker.services.scaffold.new_plugin import write_plugin

    folder, written = write_plugin(name, parent)
    _show(folder, written)
    commands = (
        f"pip install {folder}",
        f"tasker plugin show {name}",
        f"pytest {folder}",
    )
    echo("\n  ".join(("Next:", *commands)))


def _show(folder: Path, written: dict[str, str]) -> None:
    echo(f"made {folder}:")
    for file, what in written.items():
        echo(f"  {file:<{max(map(len, written))}}  {what}")
