"""What `tasker worker` and `tasker orchestrator` share: configuration, options that override it, and the log."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import configured_for
from tasker.cli.options import Database
from tasker.errors import UsageError

if TYPE_CHECKING:
    from tasker.app.configured import Configured

LEVEL_VARIABLE = "TASKER_LOG_LEVEL"
LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")


def no_config_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--no-config`."""
    return click.option(
        "--no-config", is_flag=True, help="Start without a configuration file: defaults, and the options given here."
    )(command)


def configuration(context: str, database: Database, no_config: bool, **given: Any) -> Configured:
    """The configuration of a process of the fleet; options that were given (not None) count above it.

    Raises `ConfigurationError` when there is no file (C-148) and `--no-config` was not given, and
    `ConfigurationInvalid` with every problem of the file.
    """
    chosen = configured_for(database, context, no_config=no_config)
    worker = replace(chosen.worker, **{name: value for name, value in given.items() if value is not None})
    return replace(chosen, worker=worker)


def log_level(environ: Mapping[str, str] = os.environ) -> int | None:
    """The level that `TASKER_LOG_LEVEL` names, None when it is not set. Raises `UsageError` for another word."""
    name = environ.get(LEVEL_VARIABLE, "").strip().upper()
    if name and name not in LEVELS:
        raise UsageError(f"{LEVEL_VARIABLE} is {name!r}", hint=f"use one of: {', '.join(LEVELS)}")
    return getattr(logging, name, None)


def log_to_stderr(environ: Mapping[str, str] = os.environ) -> None:
    """Lines of the process's own log from `TASKER_LOG_LEVEL` on; the migrations' chatter is left out.

    Raises `UsageError` for a level that there is not.
    """
    level = log_level(environ) or logging.INFO
    logging.basicConfig(level=level, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)
