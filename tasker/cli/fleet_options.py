"""What `tasker worker` and `tasker orchestrator` share: their configuration, and where options override it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import configured_for
from tasker.cli.options import Database

if TYPE_CHECKING:
    from tasker.app.configured import Configured


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


def log_to_stderr() -> None:
    """Lines of the process's own log; the migrations' chatter is left out."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)
