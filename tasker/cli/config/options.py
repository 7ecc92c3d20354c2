"""What the commands of `tasker config` share: their options, and which configuration these choose."""

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
    """Adds `--context`."""
    words = "`complete` is one process that does everything."
    return click.option("--context", type=click.Choice(CONTEXTS), default=default, show_default=True, help=words)


def source_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--environment` and `--source-dir`."""
    environment = click.option(
        "--environment",
        metavar="NAME",
        help=f"{', '.join(ENVIRONMENTS)}.  [default: {ENVIRONMENT_VARIABLE}, else development]",
    )
    folder = click.option(
        "--source-dir", type=FOLDER, help=f"Where base and environments lie.  [default: {SOURCE_DIR}]"
    )
    return environment(folder(command))


def said_environment(given: str | None) -> str | None:
    """The environment of the command line or of TASKER_ENV."""
    return given or os.environ.get(ENVIRONMENT_VARIABLE) or None


def environment_of(given: str | None) -> str:
    """The same, `development` when nobody says it."""
    return said_environment(given) or ENVIRONMENT


def names_a_file(environment: str | None, source_dir: Path | None) -> bool:
    """True when the variables of the environment say what a process reads here, and no option says otherwise."""
    return not (environment or source_dir) and any(os.environ.get(name) for name in (PATH_VARIABLE, ROOT_VARIABLE))


def made_for_context(layers: Iterable[ConfigurationLayer]) -> str | None:
    """The context that the header of a generated file names; None when none does."""
    told = (contexts_of(layer.text).get("Context") for layer in layers)
    return next((each for each in told if each in CONTEXTS), None)


def elsewhere(context: str | None, found: Configuration) -> dict[str, Any]:
    """By path, what a worker or an orchestrator would use in place of what a single process uses.

    Empty when `context` says which is meant, when the file does, and without files: then only a single process starts.
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
    """What is asked for; else what a process would read here; else what lies in the source folder; else defaults.

    `context` None is what a generated file was made for, else `complete`.
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
