"""`tasker config`: make, check, show and explain the configuration. Needs no database."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click
from click.shell_completion import CompletionItem

from tasker.cli import config_view as view
from tasker.errors import UsageError
from tasker.services.configuration import (
    ENVIRONMENT_VARIABLE,
    PATH_VARIABLE,
    ROOT_VARIABLE,
    Configuration,
    ConfigurationInvalid,
    assemble,
    differences,
    from_sources,
    generate,
    run_time_file,
)
from tasker.services.configuration_sources import CONTEXTS, ENVIRONMENTS, SOURCE_DIR, read_layer
from tasker.settings.catalogue import by_path, tables

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
FORMAT = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)


def complete_key(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The parameters that begin so; while there are many, the tables of the next level."""
    found = [path for path in by_path() if path.startswith(incomplete)]
    if len(found) > 40:
        depth = incomplete.count(".") + 1
        found = sorted({".".join(path.split(".")[:depth]) for path in found})
    return [CompletionItem(path) for path in found]


KEY = click.argument("key", required=False, shell_complete=complete_key)


def _context(default: str | None) -> Callable[[Any], Any]:
    words = "`complete` is one process that does everything."
    return click.option("--context", type=click.Choice(CONTEXTS), default=default, show_default=True, help=words)


def _source(command: Callable[..., Any]) -> Callable[..., Any]:
    environment = click.option(
        "--environment",
        metavar="NAME",
        help=f"{', '.join(ENVIRONMENTS)}.  [default: {ENVIRONMENT_VARIABLE}, else development]",
    )
    folder = click.option(
        "--source-dir", type=FOLDER, help=f"Where base and environments lie.  [default: {SOURCE_DIR}]"
    )
    return environment(folder(command))


@click.group()
def config() -> None:
    """Make, check, show and explain the configuration."""


@config.command("generate")
@_context("complete")
@_source
@click.option("--output", metavar="PATH", help="The file to write; - is standard output.")
def generate_command(context: str, environment: str | None, source_dir: Path | None, output: str | None) -> None:
    """Write the merged file that a process reads (TASKER_CONFIG_PATH).

    ${...} placeholders stay as they are, so the file holds no secret and may be committed.
    """
    name, folder = _environment(environment), source_dir or SOURCE_DIR
    text = generate(context, name, folder, os.environ, datetime.now(UTC))
    if output == "-":
        click.echo(text, nl=False)
        return
    file = Path(output) if output else folder / "generated" / f"{context}-{name}.toml"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    click.echo(f"wrote {file}")


@config.command()
@_context(None)
@_source
@click.option("--file", "file", type=FILE, help="Check this merged file instead.")
@click.option("--check-connectivity", is_flag=True, help="Also connect to the database.")
@FORMAT
def validate(
    context: str | None,
    environment: str | None,
    source_dir: Path | None,
    file: Path | None,
    check_connectivity: bool,
    form: str,
) -> None:
    """Check the configuration of a context, or of all. Exit code 1 when something is wrong; every problem is shown."""
    name = _environment(environment)
    contexts = [context] if context else (["complete"] if file else list(CONTEXTS))
    results = [_result(each, name, source_dir or SOURCE_DIR, file) for each in contexts]
    click.echo(view.as_json(results) if form == "json" else view.as_text(results))
    if any(isinstance(each, ConfigurationInvalid) for each in results):
        raise click.exceptions.Exit(1)
    if check_connectivity:
        _connect([each for each in results if isinstance(each, Configuration)])


def _result(
    context: str, environment: str, source_dir: Path, file: Path | None
) -> Configuration | ConfigurationInvalid:
    try:
        if file:
            return assemble(context, environment, [read_layer(file)], os.environ)
        return from_sources(context, environment, source_dir)
    except ConfigurationInvalid as error:
        return error


def _connect(configurations: list[Configuration]) -> None:
    from tasker.db.database import connect, describe_url

    for url in sorted({each.settings.common.database.url for each in configurations} - {""}):
        connect(url).close()
        click.echo(f"✓ Connected to {describe_url(url)}")


@config.command()
@KEY
@_context("complete")
@_source
@click.option("--file", "file", type=FILE, help="Show this merged file.")
@click.option("--format", "form", type=click.Choice(["toml", "json"]), default="toml", show_default=True)
def show(
    key: str | None, context: str, environment: str | None, source_dir: Path | None, file: Path | None, form: str
) -> None:
    """Print the values in effect, of KEY or of everything, defaults included. Secrets are left out."""
    chosen = _chosen(context, environment, source_dir, file)
    click.echo(view.shown(chosen, _known(key) if key else None, form), nl=False)


@config.command()
@KEY
@click.option("--parameter", metavar="KEY", shell_complete=complete_key, help="The same as KEY.")
@_context("complete")
@_source
@click.option("--file", "file", type=FILE, help="Look into this merged file.")
@FORMAT
def explain(
    key: str | None,
    parameter: str | None,
    context: str,
    environment: str | None,
    source_dir: Path | None,
    file: Path | None,
    form: str,
) -> None:
    """Tell what KEY means, what it may be, what it is, and which file or variable says so."""
    path = _known(key or parameter or "")
    chosen: Configuration | None
    try:
        chosen = _chosen(context, environment, source_dir, file)
    except ConfigurationInvalid as error:
        count = len(error.problems)
        click.echo(
            f"The configuration has {count} problems, see `tasker config validate`; no value is shown.", err=True
        )
        chosen = None
    explained = view.explained(path, chosen)
    click.echo(json.dumps(explained, indent=2) if form == "json" else view.explanation_text(explained))


@config.command()
@click.argument("one")
@click.argument("other")
@_context("complete")
@click.option("--source-dir", type=FOLDER, default=SOURCE_DIR, show_default=True)
@FORMAT
def diff(one: str, other: str, context: str, source_dir: Path, form: str) -> None:
    """Compare two environments or merged files, value by value. Exit code 1 when they differ."""
    left, right = (_named(name, context, source_dir) for name in (one, other))
    found = [view.difference(*each) for each in differences(left.settings, right.settings)]
    if form == "json":
        click.echo(json.dumps(found, indent=2))
    else:
        for each in found:
            click.echo(f"{each['path']}: {each['one']} -> {each['other']}")
    if found:
        raise click.exceptions.Exit(1)


@config.command()
@click.option("--output", metavar="PATH", type=click.Path(dir_okay=False, path_type=Path), help="The file to write.")
def docs(output: Path | None) -> None:
    """Print the reference of all parameters as Markdown."""
    from tasker.settings.reference import reference

    if output is None:
        click.echo(reference(), nl=False)
    else:
        output.write_text(reference(), encoding="utf-8")
        click.echo(f"wrote {output}")


def _environment(given: str | None) -> str:
    return given or os.environ.get(ENVIRONMENT_VARIABLE) or "development"


def _chosen(context: str, environment: str | None, source_dir: Path | None, file: Path | None) -> Configuration:
    """What is asked for; else what a process would read here; else what lies in the source folder; else defaults."""
    name = _environment(environment)
    if file:
        return assemble(context, name, [read_layer(file)], os.environ)
    run_time = environment is None and source_dir is None
    if run_time and (os.environ.get(PATH_VARIABLE) or os.environ.get(ROOT_VARIABLE)):
        found = run_time_file(context, name, os.environ)
        return assemble(context, name, [read_layer(found)] if found else [], os.environ)
    if run_time and not (SOURCE_DIR / "base").is_dir():
        return assemble(context, name, [], os.environ)
    return from_sources(context, name, source_dir or SOURCE_DIR)


def _named(name: str, context: str, source_dir: Path) -> Configuration:
    if Path(name).is_file():
        return assemble(context, _environment(None), [read_layer(Path(name))], os.environ)
    return from_sources(context, name, source_dir)


def _known(key: str) -> str:
    """The path of a parameter or table. Raises `UsageError` with what it could have been."""
    if key in by_path() or key in tables():
        return key
    if not key:
        raise UsageError("no key is given", hint="for example: tasker config explain common.queues.backend")
    raise UsageError(f"there is no setting {key!r}", hint=view.nearest(key))
