"""`tasker new`: a folder with a workflow that runs."""

from __future__ import annotations

from pathlib import Path

import click

from tasker.cli.render.values import echo


@click.command()
@click.argument("name")
@click.option(
    "--dir",
    "parent",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path(),
    help="Where to make the folder.",
)
def new(name: str, parent: Path) -> None:
    """Start a workflow: a folder NAME with a commented template, handlers, an input and a test.

    It runs as it is. NAME is made of small letters, digits and underscores. Nothing is ever overwritten.

    \b
    Examples:
      tasker new hello
      tasker new billing --dir workflows
    """
    from tasker.services.scaffold import write_workflow

    written = write_workflow(name, parent)
    folder = parent / name
    echo(f"made {folder}:")
    for file, what in written.items():
        echo(f"  {file:<{max(map(len, written))}}  {what}")
    echo(f"Next:\n  tasker run {folder}\n  tasker run {folder} --set name=you\n  pytest {folder}")
