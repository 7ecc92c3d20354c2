"""`tasker worker list`: the running processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from tasker.cli.connection import FORMAT, print_as
from tasker.cli.render.values import clock_time
from tasker.cli.target import FleetTarget, fleet_options, run_on_fleet
from tasker.services.wording import duration

if TYPE_CHECKING:
    from tasker.views.fleet import WorkerInfo

COLOURS = {"live": "green", "draining": "yellow", "lost": "red", "stopped": None}


@click.command("list")
@click.option("--all", "stopped", is_flag=True, help="Include stopped processes.")
@click.option("--callables", is_flag=True, help="List the handlers and tags of each worker.")
@FORMAT
@fleet_options
def list_(stopped: bool, callables: bool, form: str, place: FleetTarget) -> None:
    """List the workers and orchestrators of this database: where they run, what they serve, and their state.

    A lost process has not renewed its lease; the column shows for how long the lease is over, and its steps run
    elsewhere. The number of in-flight steps, and its maximum, are as of the last heartbeat.

    \b
    Examples:
      tasker worker list
      tasker worker list --callables
      tasker worker list --format json
    """
    rows = run_on_fleet(place, lambda app: app.workers.list(stopped=stopped))
    print_as(form, rows, lambda _: list_text(rows, callables=callables))


def list_text(rows: Sequence[WorkerInfo], *, callables: bool) -> str:
    """Render one line per process; with `callables` its handlers below the table."""
    from tasker.cli.render.values import table

    if not rows:
        return "no processes are running; start one with: tasker worker"
    headings = (
        "worker",
        "kind",
        "state",
        "host",
        "pid",
        "serves",
        "handlers",
        "steps at beat",
        "last beat",
        "lease",
        "version",
    )
    text = table(headings, [_line(row) for row in rows])
    return "\n".join([text, *map(_callables, rows)]) if callables else text


def _line(row: WorkerInfo) -> tuple[str, ...]:
    runs = row.kind == "worker"
    return (
        row.name or row.worker,
        row.kind,
        click.style(row.state, fg=COLOURS[row.state]),
        row.host,
        str(row.pid),
        ", ".join(row.namespaces),
        str(len(row.callables)) if runs else "",
        f"{row.in_hand}/{row.concurrency}" if runs else "",
        f"{clock_time(row.beat_at)}, {duration(row.beat_age_ms)} ago",
        _lease(row.lease_left_ms),
        row.version,
    )


def _lease(left: int | None) -> str:
    if left is None:
        return ""
    return f"{duration(left)} left" if left > 0 else f"expired {duration(-left)}"


def _callables(row: WorkerInfo) -> str:
    names = "".join(f"\n  {name}" for name in row.callables) or "\n  no handlers"
    names += f"\n  tags: {', '.join(row.tags)}" if row.tags else ""
    return f"\n{row.worker} serves{names}" if row.kind == "worker" else ""
