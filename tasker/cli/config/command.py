"""`tasker config`: generate, check, show and explain the configuration. Needs no database."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from tasker.cli.config import view
from tasker.cli.config.check import validate
from tasker.cli.config.importing import import_file
from tasker.cli.config.init import init
from tasker.cli.config.options import (
    FILE,
    FOLDER,
    chosen,
    context_option,
    elsewhere,
    environment_of,
    said_environment,
    source_options,
)
from tasker.cli.connection import FORMAT, format_option, print_as
from tasker.cli.guessing import GuessingGroup
from tasker.errors import ConfigurationError, UsageError
from tasker.services.configuration.backend_tables import TABLE as BACKENDS
from tasker.services.configuration.loading import (
    Configuration,
    ConfigurationInvalid,
    all_differences,
    comparable,
    generate,
)
from tasker.services.configuration.sources import SOURCE_DIR, read_layer, source_layers
from tasker.services.configuration.warnings import made_for_others, stray_files
from tasker.settings.catalogue import by_path, tables
from tasker.settings.problems import SettingProblem


def complete_key(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the prefix of a parameter; with many matches, only to the tables of the next level."""
    found = [path for path in by_path() if path.startswith(incomplete)]
    if len(found) > 40:
        depth = incomplete.count(".") + 1
        found = sorted({".".join(path.split(".")[:depth]) for path in found})
    return [CompletionItem(path) for path in found]


KEY = click.argument("key", required=False, shell_complete=complete_key)


@click.group(cls=GuessingGroup)
def config() -> None:
    """Generate, check, show and explain the configuration."""


config.add_command(init)
config.add_command(validate)
config.add_command(import_file)


@config.command("generate")
@context_option("complete")
@source_options
@click.option("--output", metavar="PATH", help="Output file; - is standard output.")
@FORMAT
def generate_command(
    context: str, environment: str | None, source_dir: Path | None, output: str | None, form: str
) -> None:
    """Write the merged file that a process reads (TASKER_CONFIG_PATH).

    ${...} placeholders are not replaced, so the file holds no secret and may be committed.
    """
    name, folder = environment_of(environment), source_dir or SOURCE_DIR
    text = generate(context, name, folder, os.environ, datetime.now(UTC))
    for warning in stray_files(folder):
        click.echo(f"Warning: {warning}", err=True)
    file = None if output == "-" else Path(output or folder / "generated" / f"{context}-{name}.toml")
    if file:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    done = {"context": context, "environment": name, "output": file and str(file), "toml": text}
    print_as(form, done, lambda _: f"wrote {file}" if file else text.removesuffix("\n"))


@config.command()
@KEY
@context_option(None)
@source_options
@click.option("--file", "file", type=FILE, help="Merged file to show.")
@format_option("toml", "json")
def show(
    key: str | None,
    context: str | None,
    environment: str | None,
    source_dir: Path | None,
    file: Path | None,
    form: str,
) -> None:
    """Print the values in effect, of KEY or of everything, including defaults. Secrets are redacted."""
    found = chosen(context, environment, source_dir, file)
    tables_of_backends = tuple(f"{BACKENDS}.{name}" for name in found.backends)
    known = key if key in tables_of_backends or not key else _known(key)
    others = view.within(elsewhere(context, found), known)
    click.echo(view.shown(found, known, form, others), nl=False)
    for line in view.others_lines(others) if form == "toml" else ():
        click.echo(line, err=True)


@config.command()
@KEY
@click.option("--parameter", metavar="KEY", shell_complete=complete_key, help="Same as the argument KEY.")
@context_option(None)
@source_options
@click.option("--file", "file", type=FILE, help="Merged file to read.")
@FORMAT
def explain(
    key: str | None,
    parameter: str | None,
    context: str | None,
    environment: str | None,
    source_dir: Path | None,
    file: Path | None,
    form: str,
) -> None:
    """Explain KEY: its meaning, its allowed values, its current value, and the file or variable that sets it."""
    path = _known(key or parameter or "")
    found, problem = _chosen_or_none(path, context, environment, source_dir, file)
    explained = view.explained(path, found, problem, elsewhere(context, found) if found else {})
    click.echo(json.dumps(explained, indent=2) if form == "json" else view.explanation_text(explained))


@config.command()
@click.argument("one")
@click.argument("other")
@context_option("complete")
@click.option("--source-dir", type=FOLDER, default=SOURCE_DIR, show_default=True)
@FORMAT
def diff(one: str, other: str, context: str, source_dir: Path, form: str) -> None:
    """Compare two environments or merged files, value by value.

    Exit code 1 if they differ, 2 if one of them cannot be read or is invalid.
    """
    try:
        left, right = (_named(name, context, source_dir) for name in (one, other))
    except ConfigurationError as error:
        raise UsageError(error.message, hint=error.hint) from error
    found = [view.difference(*each) for each in all_differences(left, right)]
    if form == "json":
        click.echo(json.dumps(found, indent=2))
    else:
        for each in found:
            click.echo(f"{each['path']}: {each['one']} -> {each['other']}")
    if found:
        raise click.exceptions.Exit(1)


@config.command()
@click.option("--output", metavar="PATH", type=click.Path(dir_okay=False, path_type=Path), help="Output file.")
def docs(output: Path | None) -> None:
    """Print the reference of all parameters as Markdown."""
    from tasker.settings.reference import reference

    if output is None:
        click.echo(reference(), nl=False)
    else:
        output.write_text(reference(), encoding="utf-8")
        click.echo(f"wrote {output}")


def _chosen_or_none(
    path: str, context: str | None, environment: str | None, source_dir: Path | None, file: Path | None
) -> tuple[Configuration | None, SettingProblem | None]:
    """Return the configuration and the problem of `path`; print warnings and problems elsewhere to stderr.

    The configuration is None, with the reason printed, if it cannot be read. Problems of other parameters are only
    mentioned.
    """
    problem = None
    try:
        found = chosen(context, environment, source_dir, file)
    except ConfigurationInvalid as error:
        count = len(error.problems)
        reason = f"The configuration has {count} problem{'s' if count > 1 else ''}, see `tasker config validate`"
        click.echo(f"{reason}; no process can start with it.", err=True)
        found, problem = error.usable, error.concerning(path)
    except ConfigurationError as error:
        click.echo(
            f"{error.message}; values are not shown." + (f"\nHint: {error.hint}" if error.hint else ""), err=True
        )
        return None, None
    for warning in made_for_others(found.layers, found.context, said_environment(environment)):
        click.echo(f"Warning: {warning}", err=True)
    return found, problem


def _named(name: str, context: str, source_dir: Path) -> Configuration:
    if Path(name).is_file():
        return comparable(context, environment_of(None), [read_layer(Path(name))])
    return comparable(context, name, source_layers(context, name, source_dir))


def _known(key: str) -> str:
    """Return the path of a parameter or table. Raises `UsageError` with similar names."""
    if key in by_path() or key in tables():
        return key
    if not key:
        raise UsageError("expected a KEY", hint="for example: tasker config explain common.queues.backend")
    raise UsageError(f"there is no setting {key!r}", hint=view.nearest(key))
