"""`tasker orchestrator`: a process that moves tasks on and runs no steps."""

from __future__ import annotations

import logging

import click

from tasker.cli.options import Database, database_options


@click.command()
@click.option("--sweep-slice", default=500, show_default=True, help="Open tasks that a sweep reads per query.")
@database_options
def orchestrator(sweep_slice: int, database: Database) -> None:
    """End results that workers parked, promote retries, sweep, until stopped.

    Needed for workers with `--result-path queued`; harmless beside others: any number of orchestrators share the work.

    \b
    Example:
      tasker orchestrator --database-url postgresql://tasker@db/tasker
    """
    from tasker.app.serving import Service, run, serve_orchestrator
    from tasker.orchestration.sweep import SweepSettings

    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    logging.getLogger("alembic").setLevel(logging.WARNING)
    service = Service(
        database_url=database.url,
        backend=database.backend,
        data_dir=database.data_dir,
        sweeps=SweepSettings(slice=sweep_slice),
    )
    run(serve_orchestrator, service, lambda line: click.echo(line, err=True))
