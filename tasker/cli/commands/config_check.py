"""`tasker config validate`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.commands import config_text
from tasker.cli.connection import FORMAT
from tasker.services.configuration.loading import (
    ENVIRONMENT_VARIABLE,
    PATH_VARIABLE,
    ROOT_VARIABLE,
    Configuration,
    ConfigurationInvalid,
    assemble,
    conventional_files,
    differences,
    from_sources,
    run_time_file,
    ungenerated_sources,
)
from tasker.services.configuration.sources import CONTEXTS, ENVIRONMENTS, SOURCE_DIR, ConfigurationLayer, read_layer
from tasker.services.configuration.warnings import contexts_of, made_for_others, patterns_without_match, stray_files
from tasker.settings.execution import Execution

if TYPE_CHECKING:
    from tasker.services.configuration.connectivity import ConnectivityResult

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)


def context_option(default: str | None) -> Callable[[Any], Any]:
    """Add `--context`."""
    words = "Kind of process; `complete` is a single process that does everything."
    return click.option("--context", type=click.Choice(CONTEXTS), default=default, show_default=True, help=words)


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--environment` and `--source-dir`."""
    environment = click.option(
        "--environment",
        metavar="NAME",
        help=f"{', '.join(ENVIRONMENTS)}.  [default: {ENVIRONMENT_VARIABLE}, else development]",
    )
    folder = click.option(
        "--source-dir", type=FOLDER, help=f"Directory with base and environments.  [default: {SOURCE_DIR}]"
    )
    return environment(folder(command))


def said_environment(given: str | None) -> str | None:
    """Return the environment of the command line or of TASKER_ENV, or None."""
    return given or os.environ.get(ENVIRONMENT_VARIABLE) or None


def environment_of(given: str | None) -> str:
    """Return the environment of the command line or of TASKER_ENV; `development` by default."""
    return said_environment(given) or Execution.environment


def names_a_file(environment: str | None, source_dir: Path | None) -> bool:
    """Return whether the process would read the file named by a variable: no option selects something else."""
    return not (environment or source_dir) and any(os.environ.get(name) for name in (PATH_VARIABLE, ROOT_VARIABLE))


def made_for_context(layers: Iterable[ConfigurationLayer]) -> str | None:
    """Return the context in the header of a generated file, or None without such a header."""
    contexts = (contexts_of(layer.text).get("Context") for layer in layers)
    return next((context for context in contexts if context in CONTEXTS), None)


def elsewhere(context: str | None, configuration: Configuration) -> dict[str, Any]:
    """Return the settings, by path, whose value in a worker or an orchestrator differs from that of a single process.

    Empty if `context` or the file's header names a context, and without files: then only a single process starts.
    """
    files = [layer for layer in configuration.layers if layer.text]
    if context or not files or made_for_context(files):
        return {}
    try:
        other = assemble("worker", configuration.environment, files, os.environ)
    except ConfigurationInvalid as error:
        other = error.usable
    return {path: there for path, _, there in differences(configuration.settings, other.settings)}


def chosen(context: str | None, environment: str | None, source_dir: Path | None, file: Path | None) -> Configuration:
    """Return the selected configuration, else that of a process here, else the source folder's, else the defaults.

    If `context` is None, the context in the header of a generated file applies, else `complete`.
    """
    name, requested = environment_of(environment), context
    context = context or "complete"
    if file is None and names_a_file(environment, source_dir):
        file = run_time_file(context, name, os.environ)
    if file:
        layer = read_layer(file)
        return assemble(requested or made_for_context([layer]) or context, name, [layer], os.environ)
    if not (environment or source_dir) and not (SOURCE_DIR / "base").is_dir():
        return assemble(context, name, [], os.environ)
    return from_sources(context, name, source_dir or SOURCE_DIR)


NOT_GENERATED = (
    "no process can start with this yet: nothing was generated from it; "
    "for each context and environment: tasker config generate --context worker --environment production"
)
Target = tuple[str, Path | None]
"""Context, and the merged file to read for it; None to read the source folders."""


@click.command()
@context_option(None)
@source_options
@click.option("--file", "file", type=FILE, help="Merged file to check instead.")
@click.option("--check-connectivity", is_flag=True, help="Also connect to the database and to the messaging backend.")
@FORMAT
def validate(
    context: str | None,
    environment: str | None,
    source_dir: Path | None,
    file: Path | None,
    check_connectivity: bool,
    form: str,
) -> None:
    """Check the configuration that a process would read: the file named by TASKER_CONFIG_PATH or TASKER_CONFIG_ROOT,
    else the source folders.

    For source folders every context of the environment is checked, or the one of --context. Every problem is shown.
    Exit code 1 if there is one.
    """
    ungenerated = None
    if file is None and not (environment or source_dir):
        source_dir = ungenerated = ungenerated_sources(environment_of(environment), os.environ)
    targets = _targets(context, environment, source_dir, file)
    results = [_result(target, environment_of(environment), source_dir or SOURCE_DIR) for target in targets]
    good = [result for result in results if isinstance(result, Configuration)]
    messages = [text for configuration in good for text in _warnings(configuration, said_environment(environment))]
    if any(read is None for _, read in targets):
        messages += stray_files(source_dir or SOURCE_DIR)
    if ungenerated:
        messages.append(NOT_GENERATED)
    warnings = list(dict.fromkeys(messages))
    tried = _tried(good) if check_connectivity and len(good) == len(results) else []
    if form == "json":
        click.echo(config_text.as_json(results, warnings, tried if check_connectivity else None))
    else:
        click.echo(config_text.as_text(results, [str(path) for _, path in targets if path], tried))
        for warning in warnings:
            click.echo(f"Warning: {warning}", err=True)
    if len(good) < len(results) or any(connection.reason for connection in tried):
        raise click.exceptions.Exit(1)


def _targets(context: str | None, environment: str | None, source_dir: Path | None, file: Path | None) -> list[Target]:
    if file is None and names_a_file(environment, source_dir):
        if not os.environ.get(PATH_VARIABLE):
            return _by_convention(context, environment_of(environment))
        file = run_time_file(context or "complete", environment_of(environment), os.environ)
    if file:
        return [(context or made_for_context([read_layer(file)]) or "complete", file)]
    return [(context_name, None) for context_name in ([context] if context else CONTEXTS)]


def _by_convention(context: str | None, environment: str) -> list[Target]:
    """Return the existing generated files below TASKER_CONFIG_ROOT. Raises `ConfigurationError` if there is none."""
    contexts = [context] if context else conventional_files(environment, os.environ) or ["complete"]
    return [(context_name, run_time_file(context_name, environment, os.environ)) for context_name in contexts]


def _result(target: Target, environment: str, source_dir: Path) -> Configuration | ConfigurationInvalid:
    context, file = target
    try:
        if file:
            return assemble(context, environment, [read_layer(file)], os.environ)
        return from_sources(context, environment, source_dir)
    except ConfigurationInvalid as error:
        return error


def _warnings(configuration: Configuration, environment: str | None) -> Iterator[str]:
    yield from made_for_others(configuration.layers, configuration.context, environment)
    yield from patterns_without_match(configuration)


def _tried(configurations: list[Configuration]) -> list[ConnectivityResult]:
    """Test each distinct combination of database and backend once."""
    from tasker.app.configured import configured
    from tasker.services.configuration.connectivity import connectivity

    candidates = [configured(configuration.settings, configuration.backends) for configuration in configurations]
    different = {
        (candidate.database_url, candidate.worker.events.listen_url, candidate.backend): candidate
        for candidate in candidates
    }
    tried = (
        connectivity(*names, candidate.backend_settings.get(candidate.backend, {}))
        for names, candidate in different.items()
    )
    return list(dict.fromkeys(chain.from_iterable(tried)))
