"""`tasker config validate`: errors and probable mistakes of a configuration, and a connection test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tasker.cli.config import view
from tasker.cli.config.options import (
    FILE,
    context_option,
    environment_of,
    made_for_context,
    names_a_file,
    said_environment,
    source_options,
)
from tasker.cli.connection import FORMAT
from tasker.services.configuration.loading import (
    PATH_VARIABLE,
    Configuration,
    ConfigurationInvalid,
    assemble,
    conventional_files,
    from_sources,
    run_time_file,
    ungenerated_sources,
)
from tasker.services.configuration.sources import CONTEXTS, SOURCE_DIR, read_layer
from tasker.services.configuration.warnings import made_for_others, patterns_without_match, stray_files

if TYPE_CHECKING:
    from tasker.services.configuration.connectivity import ConnectivityResult

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
    results = [_result(each, environment_of(environment), source_dir or SOURCE_DIR) for each in targets]
    good = [each for each in results if isinstance(each, Configuration)]
    found = [text for each in good for text in _warnings(each, said_environment(environment))]
    if any(read is None for _, read in targets):
        found += stray_files(source_dir or SOURCE_DIR)
    if ungenerated:
        found.append(NOT_GENERATED)
    warnings = list(dict.fromkeys(found))
    tried = _tried(good) if check_connectivity and len(good) == len(results) else []
    if form == "json":
        click.echo(view.as_json(results, warnings, tried if check_connectivity else None))
    else:
        click.echo(view.as_text(results, [str(found) for _, found in targets if found], tried))
        for warning in warnings:
            click.echo(f"Warning: {warning}", err=True)
    if len(good) < len(results) or any(each.reason for each in tried):
        raise click.exceptions.Exit(1)


def _targets(context: str | None, environment: str | None, source_dir: Path | None, file: Path | None) -> list[Target]:
    if file is None and names_a_file(environment, source_dir):
        if not os.environ.get(PATH_VARIABLE):
            return _by_convention(context, environment_of(environment))
        file = run_time_file(context or "complete", environment_of(environment), os.environ)
    if file:
        return [(context or made_for_context([read_layer(file)]) or "complete", file)]
    return [(each, None) for each in ([context] if context else CONTEXTS)]


def _by_convention(context: str | None, environment: str) -> list[Target]:
    """Return the existing generated files below TASKER_CONFIG_ROOT. Raises `ConfigurationError` if there is none."""
    contexts = [context] if context else conventional_files(environment, os.environ) or ["complete"]
    return [(each, run_time_file(each, environment, os.environ)) for each in contexts]


def _result(target: Target, environment: str, source_dir: Path) -> Configuration | ConfigurationInvalid:
    context, file = target
    try:
        if file:
            return assemble(context, environment, [read_layer(file)], os.environ)
        return from_sources(context, environment, source_dir)
    except ConfigurationInvalid as error:
        return error


def _warnings(found: Configuration, environment: str | None) -> Iterator[str]:
    yield from made_for_others(found.layers, found.context, environment)
    yield from patterns_without_match(found)


def _tried(configurations: list[Configuration]) -> list[ConnectivityResult]:
    """Test each distinct combination of database and backend once."""
    from tasker.app.configured import configured
    from tasker.services.configuration.connectivity import connectivity

    found = [configured(each.settings, each.backends) for each in configurations]
    different = {(each.database_url, each.worker.events.listen_url, each.backend): each for each in found}
    tried = (connectivity(*names, each.backend_settings.get(each.backend, {})) for names, each in different.items())
    return list(dict.fromkeys(chain.from_iterable(tried)))
