"""Shared options of `tasker config`, and the configuration that they select."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import click

from tasker.contracts.defaults import ENVIRONMENT
from tasker.services.configuration.loading import (
    ENVIRONMENT_VARIABLE,
    PATH_VARIABLE,
    ROOT_VARIABLE,
    Configuration,
    ConfigurationInvalid,
    assemble,
    differences,
    from_sources,
    run_time_file,
)
from tasker.services.configuration.sources import CONTEXTS, ENVIRONMENTS, SOURCE_DIR, ConfigurationLayer, read_layer
from tasker.services.configuration.warnings import contexts_of

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
    return said_environment(given) or ENVIRONMENT


def names_a_file(environment: str | None, source_dir: Path | None) -> bool:
    """Return whether the process would read the file named by a variable: no option selects something else."""
    return not (environment or source_dir) and any(os.environ.get(name) for name in (PATH_VARIABLE, ROOT_VARIABLE))


def made_for_context(layers: Iterable[ConfigurationLayer]) -> str | None:
    """Return the context in the header of a generated file, or None without such a header."""
    told = (contexts_of(layer.text).get("Context") for layer in layers)
    return next((each for each in told if each in CONTEXTS), None)


def elsewhere(context: str | None, found: Configuration) -> dict[str, Any]:
    """Return the settings, by path, whose value in a worker or an orchestrator differs from that of a single process.

    Empty if `context` or the file's header names a context, and without files: then only a single process starts.
    """
    files = [layer for layer in found.layers if layer.text]
    if context or not files or made_for_context(files):
        return {}
    try:
        other = assemble("worker", found.environment, files, os.environ)
    except ConfigurationInvalid as error:
        other = error.usable
    return {path: there for path, _, there in differences(found.settings, other.settings)}


def chosen(context: str | None, environment: str | None, source_dir: Path | None, file: Path | None) -> Configuration:
    """Return the selected configuration, else that of a process here, else the source folder's, else the defaults.

    If `context` is None, the context in the header of a generated file applies, else `complete`.
    """
    name, asked = environment_of(environment), context
    context = context or "complete"
    if file is None and names_a_file(environment, source_dir):
        file = run_time_file(context, name, os.environ)
    if file:
        layer = read_layer(file)
        return assemble(asked or made_for_context([layer]) or context, name, [layer], os.environ)
    if not (environment or source_dir) and not (SOURCE_DIR / "base").is_dir():
        return assemble(context, name, [], os.environ)
    return from_sources(context, name, source_dir or SOURCE_DIR)
