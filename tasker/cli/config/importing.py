"""`tasker config import`: import of a tasker-core configuration, with a warning for each unsupported setting."""

from __future__ import annotations

import json
from pathlib import Path

import click

from tasker.cli.config.options import FILE, context_option
from tasker.cli.connection import FORMAT
from tasker.errors import UsageError
from tasker.services.configuration.importing import SUMMARY, imported
from tasker.services.configuration.sources import read_layer
from tasker.settings.toml_text import toml_text


@click.command("import")
@click.argument("file", type=FILE)
@context_option("complete")
@click.option("--environment", default="production", show_default=True, help="Deployment that the settings are for.")
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Output file, never overwritten; without it standard output is used.",
)
@FORMAT
def import_file(file: Path, context: str, environment: str, output: Path | None, form: str) -> None:
    """Import a configuration of tasker-core: write the supported settings, and explain each setting that is left out.

    Placeholders such as ${DATABASE_URL} are not replaced. The reference lists every unsupported key and the reason.

    \b
    Example:
      tasker config import old/orchestration-production.toml --output config/orchestration-production.toml
    """
    if output and output.exists():
        raise UsageError(f"{output} exists", hint="choose another --output; existing files are not overwritten")
    layer = read_layer(file)
    found = imported(layer, context, environment)
    text = SUMMARY.format(name=file.name, left=len(found.left_out)) + toml_text(found.tables)
    if output:
        output.write_text(text, encoding="utf-8")
    if form == "json":
        left_out = [each.to_dict() for each in found.left_out]
        click.echo(
            json.dumps({"output": str(output) if output else None, "toml": text, "left_out": left_out}, indent=2)
        )
        return
    for each in found.left_out:
        place = f"{layer.place_of(each.path) or layer.name}: " if not each.place else f"{each.place}: "
        click.echo(f"Warning: {place}{each.path} is ignored. {each.issue}. {each.fix}", err=True)
    click.echo(f"wrote {output}" if output else text.rstrip())
