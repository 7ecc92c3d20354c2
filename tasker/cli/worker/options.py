"""What `tasker worker` and `tasker orchestrator` share: configuration, options that override it, and the log."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, MutableMapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from tasker import log_format
from tasker.cli.connection import configured_for
from tasker.cli.options import DatabaseOption
from tasker.contracts.defaults import ENVIRONMENT
from tasker.log_levels import LEVEL_VARIABLE, Levels, levels_named
from tasker.log_lines import log_line

if TYPE_CHECKING:
    from tasker.app.configured import Configured

LOG_FORMAT = click.option(
    "--log-format",
    type=click.Choice(log_format.FORMATS),
    envvar=log_format.FORMAT_VARIABLE,
    show_envvar=True,
    expose_value=False,
    callback=lambda ctx, param, value: _pass_on(value),
    help="How lines of the log are written: as text, or each as a JSON object.  [default: text]",
)
"""Adds `--log-format`, for this process and those that it starts."""
_log = logging.getLogger("tasker.configuration")


def _pass_on(form: str | None) -> None:
    if form is not None:
        os.environ[log_format.FORMAT_VARIABLE] = form


def no_config_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds `--no-config`."""
    return click.option(
        "--no-config", is_flag=True, help="Start without a configuration file: defaults, and the options given here."
    )(command)


def configuration(context: str, database: DatabaseOption, no_config: bool, **given: Any) -> Configured:
    """The configuration of a process of the fleet; options that were given (not None) count above it.

    Raises `ConfigurationError` when there is no file and `--no-config` was not given, and
    `ConfigurationInvalid` with every problem of the file.
    """
    chosen = configured_for(database, context, no_config=no_config)
    worker = replace(chosen.worker, **{name: value for name, value in given.items() if value is not None})
    return replace(chosen, worker=worker)


def log_to_stderr(environ: MutableMapping[str, str] = os.environ, *, default: int = logging.INFO) -> None:
    """Lines of the process's own log from `TASKER_LOG_LEVEL` on, as `TASKER_LOG_FORMAT` says.

    Child processes are told the same by the variables. Raises `UsageError` for a level that there is not.
    """
    levels = levels_named(environ) or Levels(default)
    environ[LEVEL_VARIABLE] = str(levels)
    log_format.log_to_stderr(levels, environ.get(log_format.FORMAT_VARIABLE, "text"))


def log_as_configured(chosen: Configured, environ: MutableMapping[str, str] = os.environ) -> None:
    """In the form that the configuration says, where neither option nor variable does; child processes, too.

    That there is a configuration is a line at DEBUG.
    """
    form = environ[log_format.FORMAT_VARIABLE] = environ.get(log_format.FORMAT_VARIABLE) or chosen.log_format
    log_format.write_as(form)
    log_line(_log, logging.DEBUG, "Configuration loaded", {"environment": chosen.environment or ENVIRONMENT})


class _Plain(logging.Handler):
    """The message alone, on standard error as it is at that moment: a live view puts it above itself."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print it."""
        click.echo(record.getMessage(), err=True)


def note_embedded_database() -> None:
    """Show what the embedded server does where nothing else of the log is shown: its first start takes seconds."""
    log = logging.getLogger("tasker.embedded")
    log.setLevel(logging.INFO)
    if not log.handlers:
        log.addHandler(_Plain())
