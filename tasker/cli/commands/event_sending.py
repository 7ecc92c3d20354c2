"""`tasker events send` and `tasker events incoming`: events for steps that wait."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.connection import FORMAT, actor, print_as
from tasker.cli.render.values import date_time, table
from tasker.cli.target import FleetTarget, fleet_options, run_on_fleet
from tasker.services.wording import counted

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import Fleet
    from tasker.views.incoming_events import IncomingEvent, SentEvent


def sent_text(sent: SentEvent) -> str:
    """Render what became of an event."""
    if sent.duplicate:
        return f"dropped: event {sent.event_uuid} was sent with the same dedupe id before"
    if sent.refused:
        return (
            f"sent event {sent.event_uuid}: no step took it; its payload does not fit the schema of "
            f"{counted(sent.refused, 'step')} that {'waits' if sent.refused == 1 else 'wait'} for it\n"
            "Hint: to see what did not fit: tasker task list --waiting-for event, then tasker task explain TASK"
        )
    waits = {0: "no step waits for it now", 1: "1 step took it"}.get(sent.matched, f"{sent.matched:,} steps took it")
    return f"sent event {sent.event_uuid}: {waits}"


def incoming_text(rows: Sequence[IncomingEvent]) -> str:
    """Render a table of events that were sent to waiting steps."""
    if not rows:
        return "no events; tasker events send NAMESPACE NAME sends one to the steps that wait for it"
    lines = [
        (
            row.event_uuid,
            date_time(row.sent_at),
            f"{row.namespace} {row.name}",
            row.key or "-",
            f"{row.taken:,}" + (f", refused by {row.refused:,}" if row.refused else ""),
            date_time(row.expires_at),
            row.sent_by,
        )
        for row in rows
    ]
    return table(("event", "sent", "name", "key", "taken by steps", "expires", "by"), lines)


@click.command("send")
@click.argument("namespace")
@click.argument("name")
@click.option("--key", metavar="TEXT", default="", help="Key: only steps that wait with this key take the event.")
@click.option("--payload", metavar="JSON|@FILE|-", default="{}", help="Payload; - is standard input.")
@click.option("--dedupe-id", metavar="TEXT", help="Drop the event if one of the same name was sent with it.")
@click.option("--exclusive", is_flag=True, help="Only one waiting step takes it.")
@click.option("--keep", metavar="7d", default="7d", show_default=True, help="Time in which later waits take it.")
@FORMAT
@fleet_options
def send(form: str, place: FleetTarget, namespace: str, name: str, payload: str, **options: Any) -> None:
    """Send an event to the steps of a namespace that wait for it, or will.

    \b
    Examples:
      tasker events send shop payment.settled --key S-4711 --payload '{"amount": 12}'
      tasker events send shop documents.ready --dedupe-id upload-17
    """
    from tasker.cli.run.input import read_object

    value = read_object(payload, "--payload", read_stdin=sys.stdin.read)

    async def run(app: Fleet) -> SentEvent:
        return await app.incoming_events.send(namespace, name, value, by=actor(), **options)

    print_as(form, run_on_fleet(place, run), sent_text)


@click.command("incoming")
@click.option("--namespace", metavar="NAME", help="Filter by namespace.")
@click.option("--name", metavar="NAME", help="Filter by name.")
@click.option("--key", metavar="TEXT", help="Filter by key.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Maximum number of rows.")
@FORMAT
@fleet_options
def incoming(form: str, place: FleetTarget, **which: Any) -> None:
    """List events that were sent to waiting steps, newest first, without their payloads."""

    async def read(app: Fleet) -> Sequence[IncomingEvent]:
        return await app.incoming_events.list(**which)

    print_as(form, run_on_fleet(place, read), incoming_text)
