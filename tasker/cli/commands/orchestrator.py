"""`tasker orchestrator`: a process that advances tasks but runs no steps."""

from __future__ import annotations

from functools import partial

import click

from tasker.cli.commands.process_options import (
    LOG_FORMAT,
    configuration,
    log_as_configured,
    log_to_stderr,
    no_config_option,
)
from tasker.cli.commands.server import require_libraries
from tasker.cli.loading import pause_gc
from tasker.cli.options import DatabaseOption, database_options


@click.command()
@click.option("--port", type=click.IntRange(0, 65535), help="Address for health checks and metrics.")
@LOG_FORMAT
@no_config_option
@database_options
def orchestrator(database: DatabaseOption, no_config: bool, port: int | None) -> None:
    """Process parked results, promote retries and sweep until stopped; runs no steps.

    Needed for workers with `--result-path queued`, harmless otherwise: any number of orchestrators share the work. Its
    settings come from the configuration file (TASKER_CONFIG_PATH or TASKER_CONFIG_ROOT, see `tasker config`), which
    SIGHUP reloads.

    \b
    Example:
      TASKER_CONFIG_PATH=orchestration-production.toml tasker orchestrator
    """
    with pause_gc():
        from tasker.app.serving import Service, run, serve_orchestrator

    log_to_stderr()
    read = partial(configuration, "orchestration", database, no_config)
    log_as_configured(chosen := read())
    if port is not None:
        require_libraries("a port of its own")
    service = Service(configuration=chosen, data_dir=database.data_dir, port=port, reread=read)
    run(serve_orchestrator, service, lambda line: click.echo(line, err=True))
