"""Configuration, overriding options and log of `tasker worker` and `tasker orchestrator`."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import configured_for
from tasker.cli.options import DatabaseOption
from tasker.logging import format as log_format
from tasker.logging.levels import LEVEL_VARIABLE, Levels, levels_named
from tasker.logging.lines import log_line
from tasker.settings.execution import Execution

if TYPE_CHECKING:
    from tasker.app.configured import Configured

LOG_FORMAT = click.option(
    "--log-format",
    type=click.Choice(log_format.FORMATS),
    envvar=log_format.FORMAT_VARIABLE,
    show_envvar=True,
    expose_value=False,
    callback=lambda ctx, param, value: _pass_on(value),
    help="Format of log lines: text or JSON.  [default: text]",
)
"""Decorator that adds `--log-format`, for this process and its children."""
_log = logging.getLogger("tasker.configuration")


def _pass_on(form: str | None) -> None:
    if form is not None:
        os.environ[log_format.FORMAT_VARIABLE] = form


def no_config_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add `--no-config`."""
    return click.option(
        "--no-config", is_flag=True, help="Ignore configuration files; use defaults and the given options."
    )(command)


def configuration(context: str, database: DatabaseOption, no_config: bool, **given: Mapping[str, Any]) -> Configured:
    """Return the configuration of a process of the fleet; options that were given (not None) override it.

    `given` are settings of the worker by table (see `WorkerSettings`).

    Raises `ConfigurationError` if there is no file and `--no-config` was not given, and `ConfigurationInvalid` with
    every problem of the file.
    """
    chosen = configured_for(database, context, no_config=no_config)
    tables = {}
    for name, values in given.items():
        chosen_values = {setting: value for setting, value in values.items() if value is not None}
        tables[name] = getattr(chosen.worker, name).replace(**chosen_values)
    return replace(chosen, worker=replace(chosen.worker, **tables))


def log_to_stderr(environ: MutableMapping[str, str] = os.environ, *, default: int = logging.INFO) -> None:
    """Write the process's log to stderr from `TASKER_LOG_LEVEL` on, in the format of `TASKER_LOG_FORMAT`.

    The variables are set for child processes, too. Raises `UsageError` for an unknown level.
    """
    levels = levels_named(environ) or Levels(default)
    environ[LEVEL_VARIABLE] = str(levels)
    log_format.log_to_stderr(levels, environ.get(log_format.FORMAT_VARIABLE, "text"))


def log_as_configured(chosen: Configured, environ: MutableMapping[str, str] = os.environ) -> None:
    """Use the configured log format, also in child processes, unless an option or a variable sets one.

    A line at DEBUG logs that a configuration was loaded.
    """
    form = environ[log_format.FORMAT_VARIABLE] = environ.get(log_format.FORMAT_VARIABLE) or chosen.log_format
    log_format.write_as(form)
    log_line(_log, logging.DEBUG, "Configuration loaded", {"environment": chosen.environment or Execution.environment})


class _Plain(logging.Handler):
    """Handler that prints only the message, to the current standard error: a live view shows it above itself."""

    def emit(self, record: logging.LogRecord) -> None:
        click.echo(record.getMessage(), err=True)


def note_embedded_database() -> None:
    """Show the log of the embedded server where no other log is shown: its first start takes seconds."""
    log = logging.getLogger("tasker.embedded")
    log.setLevel(logging.INFO)
    if not log.handlers:
        log.addHandler(_Plain())
