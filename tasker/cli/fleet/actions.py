"""`tasker actions`: the audit log of operator actions."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

import click

from tasker.cli.connection import FORMAT, print_as
from tasker.cli.place.options import fleet_options, run_on_fleet
from tasker.cli.place.places import FleetTarget
from tasker.cli.render.table import table
from tasker.cli.render.values import date_time
from tasker.cli.task.since import since

if TYPE_CHECKING:
    from tasker.services.server.operator_log import RecordedAction

HEADINGS = ("WHEN", "WHO", "KNOWN BY", "WHAT", "OF", "STATUS", "FROM", "NOT DONE BECAUSE")


@click.command()
@click.option("--actor", metavar="NAME", help="Filter by actor.")
@click.option("--since", type=since, metavar="2h|7d|DATE", help="Only actions since then.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Maximum number of rows.")
@FORMAT
@fleet_options
def actions(actor: str | None, since: datetime | None, limit: int, form: str, place: FleetTarget) -> None:
    """List operator actions, made over HTTP or by commands on the database, newest first.

    The status is the response status of an HTTP request, or the exit code of a command; - if unknown. An action is
    recorded in the same transaction as its effect; a refused one is recorded with the reason.

    \b
    Examples:
      tasker actions --since 2h
      tasker actions --actor ada --format json
    """
    found = run_on_fleet(place, lambda app: app.operator_log.list(actor=actor, since=since, limit=limit))
    print_as(form, found, _text)


def _text(found: Sequence[RecordedAction]) -> str:
    return table(HEADINGS, [_row(each) for each in found]) if found else "no operator actions"


def _row(each: RecordedAction) -> tuple[str, ...]:
    status = "-" if each.status is None else str(each.status)
    moment, address = date_time(each.requested_at), each.address or "-"
    return moment, each.actor, each.proof, each.endpoint, each.path or "-", status, address, each.refusal or ""
