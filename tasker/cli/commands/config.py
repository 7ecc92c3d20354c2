"""`tasker config`: create, show, explain, edit and import a configuration."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime
from pathlib import Path

import click
from click.shell_completion import CompletionItem

from tasker.cli.commands import config_text
from tasker.cli.commands.config_check import (
    FILE,
    FOLDER,
    chosen,
    context_option,
    elsewhere,
    environment_of,
    said_environment,
    source_options,
    validate,
)
from tasker.cli.connection import FORMAT, format_option, print_as
from tasker.cli.scaffold.starter_configuration import write_configuration
from tasker.cli.suggestions import GuessingGroup
from tasker.errors import ConfigurationError, UsageError
from tasker.services.configuration.effective import SUMMARY, imported
from tasker.services.configuration.installed_checks import BACKEND_TABLE as BACKENDS
from tasker.services.configuration.loading import (
    Configuration,
    ConfigurationInvalid,
    all_differences,
    comparable,
    generate,
)
from tasker.services.configuration.sources import SOURCE_DIR, read_layer, source_layers
from tasker.services.configuration.warnings import made_for_others, stray_files
from tasker.settings.catalogue import by_path, pattern_of, tables
from tasker.settings.check import SettingProblem
from tasker.settings.sources import variables_in
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
    result = imported(layer, context, environment)
    text = SUMMARY.format(name=file.name, left=len(result.left_out)) + toml_text(result.tables)
    if output:
        output.write_text(text, encoding="utf-8")
    if form == "json":
        left_out = [entry.to_dict() for entry in result.left_out]
        click.echo(
            json.dumps({"output": str(output) if output else None, "toml": text, "left_out": left_out}, indent=2)
        )
        return
    for problem in result.left_out:
        place = f"{layer.place_of(problem.path) or layer.name}: " if not problem.place else f"{problem.place}: "
        click.echo(f"Warning: {place}{problem.path} is ignored. {problem.issue}. {problem.fix}", err=True)
    click.echo(f"wrote {output}" if output else text.rstrip())


@click.command()
@click.option("--source-dir", type=FOLDER, default=SOURCE_DIR, show_default=True, help="Directory for the files.")
@FORMAT
def init(source_dir: Path, form: str) -> None:
    """Write commented configuration files: a base, and the differences of development, test and production.

    Existing files are never overwritten.
    """
    written = [str(file) for file in write_configuration(source_dir)]
    print_as(
        form, {"written": written}, lambda _: "\n".join((*(f"wrote {file}" for file in written), _next(source_dir)))
    )


def _next(source_dir: Path) -> str:
    option = "" if source_dir == SOURCE_DIR else f" --source-dir {source_dir}"
    generated = source_dir / "generated"
    return f"""Next:
  1. Edit {source_dir / "base" / "common.toml"} (database, messaging) and worker.toml beside it (concurrency, lease);
     settings that differ by environment are in {source_dir / "environments"}. To explain one: tasker config explain KEY
  2. Check it:              tasker config validate{option}
  3. Generate the file that a process reads, for each context and environment that you run:
                            tasker config generate --context worker --environment production{option}
                            tasker config generate --context orchestration --environment production{option}
  4. Set for each process:  TASKER_CONFIG_PATH={generated / "worker-production.toml"} (an orchestrator its own)
                            TASKER_ENV=production
                            DATABASE_URL=postgresql://USER:PASSWORD@HOST/DATABASE{_variables(source_dir)}
  5. Create the schema:     tasker db upgrade
  6. Start:                 tasker worker, tasker orchestrator"""


def _variables(source_dir: Path) -> str:
    """Return lines for the other variables that the production files require."""
    texts = [file.read_text("utf-8") for file in (source_dir / "environments" / "production").glob("*.toml")]
    names = {name for text in texts for line in text.splitlines() for name, default in _needed(line) if default is None}
    return "".join(f"\n                            {name}=..." for name in sorted(names - {"DATABASE_URL"}))


def _needed(line: str) -> list[tuple[str, str | None]]:
    return variables_in(line.partition("#")[0])


def complete_key(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete the prefix of a parameter; with many matches, only to the tables of the next level."""
    paths = [path for path in by_path() if path.startswith(incomplete)]
    if len(paths) > 40:
        depth = incomplete.count(".") + 1
        paths = sorted({".".join(path.split(".")[:depth]) for path in paths})
    return [CompletionItem(path) for path in paths]


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
    configuration = chosen(context, environment, source_dir, file)
    tables_of_backends = tuple(f"{BACKENDS}.{name}" for name in configuration.backends)
    known = key if key in tables_of_backends or not key else _known(key)
    if known and configuration.value(known) is None and pattern_of(known) != known:
        raise UsageError(
            f"no configuration file contains the table of {known!r}", hint="list all values: tasker config show"
        )
    others = config_text.within(elsewhere(context, configuration), known)
    click.echo(config_text.shown(configuration, known, form, others), nl=False)
    for line in config_text.others_lines(others) if form == "toml" else ():
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
    configuration, problem = _chosen_or_none(path, context, environment, source_dir, file)
    explained = config_text.explained(
        path, configuration, problem, elsewhere(context, configuration) if configuration else {}
    )
    click.echo(json.dumps(explained, indent=2) if form == "json" else config_text.explanation_text(explained))


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
    differences = [config_text.difference(*pair) for pair in all_differences(left, right)]
    if form == "json":
        click.echo(json.dumps(differences, indent=2))
    else:
        for difference in differences:
            click.echo(f"{difference['path']}: {difference['one']} -> {difference['other']}")
    if differences:
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
        configuration = chosen(context, environment, source_dir, file)
    except ConfigurationInvalid as error:
        count = len(error.problems)
        reason = f"The configuration has {count} problem{'s' if count > 1 else ''}, see `tasker config validate`"
        click.echo(f"{reason}; no process can start with it.", err=True)
        configuration, problem = error.usable, error.concerning(path)
    except ConfigurationError as error:
        click.echo(
            f"{error.message}; values are not shown." + (f"\nHint: {error.hint}" if error.hint else ""), err=True
        )
        return None, None
    for warning in made_for_others(configuration.layers, configuration.context, said_environment(environment)):
        click.echo(f"Warning: {warning}", err=True)
    return configuration, problem


def _named(name: str, context: str, source_dir: Path) -> Configuration:
    if Path(name).is_file():
        return comparable(context, environment_of(None), [read_layer(Path(name))])
    return comparable(context, name, source_layers(context, name, source_dir))


def _known(key: str) -> str:
    """Return the path of a parameter or table. Raises `UsageError` with similar names."""
    if (pattern := pattern_of(key)) in by_path() or pattern in tables():
        return key
    if not key:
        raise UsageError("expected a KEY", hint="for example: tasker config explain common.queues.backend")
    raise UsageError(f"there is no setting {key!r}", hint=config_text.nearest(key))
