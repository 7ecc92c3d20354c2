"""`tasker events`: list, follow and replay domain events."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from tasker.cli.commands.event_sending import incoming, send
from tasker.cli.commands.task_watch import since as moment
from tasker.cli.connection import FORMAT, plain, print_as
from tasker.cli.render.values import echo, table
from tasker.cli.suggestions import GuessingGroup
from tasker.cli.target import FleetTarget, fleet_options, require_known_filter, run_on_fleet
from tasker.template.names import MAX_POSITION

if TYPE_CHECKING:
    from tasker.cli.remote.fleet import Fleet
    from tasker.views.events import EventFilter, PublishedEvent, RewindResult, SubscriberStatus


def list_text(events: Sequence[PublishedEvent]) -> str:
    """Render a table of events, or the reason why there is none."""
    if not events:
        return "no matching events; steps publish the events that their template declares under publishes_events"
    rows = [
        (
            "-" if event.position is None else str(event.position),
            event.time[:19].replace("T", " "),
            event.event_name,
            event.metadata["namespace"],
            f"{event.metadata['task_uuid']} {event.metadata['step_name'] or ''}".rstrip(),
            event.withheld or _compact(event),
        )
        for event in events
    ]
    return table(("position", "at", "event", "namespace", "task and step", "payload"), rows)


def line(event: PublishedEvent) -> str:
    where = f"{event.metadata['namespace']} {event.metadata['task_uuid']} {event.metadata['step_name'] or ''}".rstrip()
    return f"{event.position}  {event.time[:19].replace('T', ' ')}  {event.event_name}  {where}  {_compact(event)}"


def subscribers_text(subscribers: Sequence[SubscriberStatus]) -> str:
    if not subscribers:
        return "no subscribers; tasker events tail --subscriber NAME or App.domain_events.subscribe creates one"
    return table(
        ("subscriber", "position", "behind", "reading", "missed events", "quarantined"), list(map(_row, subscribers))
    )


def _row(subscriber: SubscriberStatus) -> tuple[str, ...]:
    stopped = subscriber.stopped and f"stopped by {subscriber.stopped['by']}: {subscriber.stopped['reason']}"
    aside = ", ".join(
        f"{n:,} {what}" for n, what in ((subscriber.waiting, "waiting"), (subscriber.given_up, "given up")) if n
    )
    reading = stopped or _yes(subscriber.active)
    return (
        subscriber.name,
        str(subscriber.position),
        f"{subscriber.behind:,}",
        reading,
        _yes(subscriber.missed),
        aside or "-",
    )


def rewound_text(done: RewindResult) -> str:
    """Render the range of events that a subscriber reads again."""
    return f"{done.name} replays events after position {done.to}: {done.events:,} events (it was at {done.from_})"


def _compact(event: PublishedEvent) -> str:
    return json.dumps(event.payload, ensure_ascii=False, separators=(",", ":"))


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"


POSITION = click.IntRange(0, MAX_POSITION)


@click.group(cls=GuessingGroup)
def events() -> None:
    """Read the events that steps published under `publishes_events`, once or as they arrive; send events to steps that
    wait."""


events.add_command(send)
events.add_command(incoming)


def _since(ctx: click.Context, param: click.Parameter, given: str | None) -> datetime | None:
    return None if given is None else moment(given)


def _filters(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that filter events."""
    options = (
        click.option(
            "--name",
            "names",
            multiple=True,
            metavar="PATTERN",
            help="Event name or pattern, such as payment.*; repeatable.",
        ),
        click.option("--namespace", metavar="NAME", help="Filter by namespace."),
        click.option("--task", metavar="TASK_UUID", help="Filter by task."),
        click.option("--correlation", metavar="UUID", help="Filter by the correlation id of the task."),
        _SINCE,
    )
    for option in reversed(options):
        command = option(command)
    return command


_SINCE = click.option("--since", metavar="WHEN", callback=_since, help="Only events since then: 15m, 2h, 7d or a date.")


@events.command("list")
@_filters
@click.option("--after", type=POSITION, help="Only events after this position, oldest first.")
@click.option("--withheld", is_flag=True, help="Show declared events that were not published, with the reason.")
@click.option("--limit", type=click.IntRange(1, 1000), default=50, show_default=True, help="Maximum number of rows.")
@FORMAT
@fleet_options
def list_(form: str, place: FleetTarget, after: int | None, withheld: bool, limit: int, **which: Any) -> None:
    """List events in order: the newest ones, or those after a position.

    \b
    Examples:
      tasker events list --name 'payment.*' --since 1h
      tasker events list --withheld
    """

    async def read(app: Fleet) -> Any:
        if withheld:
            return await app.domain_events.withheld(_which(which), limit=limit)
        page = await app.domain_events.page(_which(which), after=after or 0, limit=limit, newest=after is None)
        return await require_known_filter(app, page.events, which["namespace"])

    print_as(form, run_on_fleet(place, read), list_text)


@events.command()
@_filters
@click.option("--after", type=POSITION, help="Start after this position; 0 starts with the oldest.")
@click.option(
    "--subscriber", metavar="NAME", help="Continue at the stored position of this subscriber, and store the new one."
)
@click.option("--from-now", is_flag=True, help="Start a new subscriber with new events instead of the oldest.")
@FORMAT
@fleet_options
def tail(
    form: str, place: FleetTarget, after: int | None, subscriber: str | None, from_now: bool, **which: Any
) -> None:
    """Print events as they arrive, one per line, until interrupted.

    With --subscriber an event counts as read once its line is written; after an interruption, unread events are
    delivered again.

    \b
    Examples:
      tasker events tail --name 'payment.*'
      tasker events tail --subscriber billing --format json | ./book-payments
    """
    from tasker.errors import UsageError

    if subscriber is not None and after is not None:
        raise UsageError("--subscriber has a stored position", hint="to read events again: tasker events replay")
    if from_now and subscriber is None:
        raise UsageError("--from-now requires --subscriber", hint="without a subscriber, tail starts with new events")

    async def follow(app: Fleet) -> None:
        stream: Any = (
            app.domain_events.follow(_which(which), after=after)
            if subscriber is None
            else app.domain_events.subscribe(subscriber, _which(which), from_now=from_now).events()
        )
        async with aclosing(stream):
            async for event in stream:
                if event is not None:
                    echo(_line(event, form))

    run_on_fleet(place, follow)


@events.command()
@FORMAT
@fleet_options
def subscribers(form: str, place: FleetTarget) -> None:
    """Show the position of each subscriber."""
    print_as(form, run_on_fleet(place, lambda app: app.domain_events.subscribers()), subscribers_text)


@events.command()
@click.argument("subscriber", metavar="SUBSCRIBER")
@click.option("--after", type=POSITION, help="Replay events after this position; 0 replays all stored events.")
@_SINCE
@FORMAT
@fleet_options
def replay(subscriber: str, after: int | None, since: datetime | None, form: str, place: FleetTarget) -> None:
    """Replay events to a subscriber. Their ids stay the same.

    \b
    Examples:
      tasker events replay billing --since 2h
      tasker events replay billing --after 1200
    """

    async def act(app: Fleet) -> Any:
        return await app.domain_events.replay(subscriber, after=after, since=since)

    print_as(form, run_on_fleet(place, act, operates=True), rewound_text)


def _which(options: dict[str, Any]) -> EventFilter:
    from tasker.views.events import EventFilter

    return EventFilter(**options)


def _line(event: PublishedEvent, form: str) -> str:
    return json.dumps(plain(event), ensure_ascii=False) if form == "json" else line(event)
