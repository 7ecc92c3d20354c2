"""`tasker config init`: the files to begin with."""

from __future__ import annotations

from pathlib import Path

import click

from tasker.cli.config_options import FOLDER
from tasker.services.configuration_sources import SOURCE_DIR
from tasker.services.scaffold.starter_configuration import write_configuration


@click.command()
@click.option("--source-dir", type=FOLDER, default=SOURCE_DIR, show_default=True, help="Where to write them.")
def init(source_dir: Path) -> None:
    """Write commented files to begin with: base, and what differs in development, test and production.

    Nothing is ever overwritten.
    """
    for file in write_configuration(source_dir):
        click.echo(f"wrote {file}")
    option = "" if source_dir == SOURCE_DIR else f" --source-dir {source_dir}"
    click.echo(f"Next:\n  tasker config validate{option}\n  tasker config generate --context worker{option}")
