"""What the commands of `tasker config` share: their options, and which configuration these choose."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from tasker.services.configuration.loading import (
    ENVIRONMENT_VARIABLE,
    PATH_VARIABLE,
    ROOT_VARIABLE,
    Configuration,
    assemble,
    from_sources,
    run_time_file,
)
from tasker.services.configuration.sources import CONTEXTS, ENVIRONMENTS, SOURCE_DIR, read_layer

FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
FOLDER = click.Path(file_okay=False, path_type=Path)
FORMAT = click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True)


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
    return said_environment(given) or "development"


def names_a_file(environment: str | None, source_dir: Path | None) -> bool:
    """True when the variables of the environment say what a process reads here, and no option says otherwise."""
    return not (environment or source_dir) and any(os.environ.get(name) for name in (PATH_VARIABLE, ROOT_VARIABLE))


def chosen(context: str, environment: str | None, source_dir: Path | None, file: Path | None) -> Configuration:
    """What is asked for; else what a process would read here; else what lies in the source folder; else defaults."""
    name = environment_of(environment)
    if file is None and names_a_file(environment, source_dir):
        file = run_time_file(context, name, os.environ)
    if file:
        return assemble(context, name, [read_layer(file)], os.environ)
    if not (environment or source_dir) and not (SOURCE_DIR / "base").is_dir():
        return assemble(context, name, [], os.environ)
    return from_sources(context, name, source_dir or SOURCE_DIR)
