"""Text output of domain events."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from tasker.cli.render.table import table

if TYPE_CHECKING:
    from tasker.services.domain_events.values import PublishedEvent, RewindResult, SubscriberStatus


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
            f"{event.metadata['task_uuid']} {event.metadata['step_name']}",
            event.withheld or _compact(event),
        )
        for event in events
    ]
    return table(("position", "at", "event", "namespace", "task and step", "payload"), rows)


def line(event: PublishedEvent) -> str:
    where = f"{event.metadata['namespace']} {event.metadata['task_uuid']} {event.metadata['step_name']}"
    return f"{event.position}  {event.time[:19].replace('T', ' ')}  {event.event_name}  {where}  {_compact(event)}"


def subscribers_text(found: Sequence[SubscriberStatus]) -> str:
    if not found:
        return "no subscribers; tasker events tail --subscriber NAME or App.domain_events.subscribe creates one"
    return table(
        ("subscriber", "position", "behind", "reading", "missed events", "quarantined"), list(map(_row, found))
    )


def _row(found: SubscriberStatus) -> tuple[str, ...]:
    stopped = found.stopped and f"stopped by {found.stopped['by']}: {found.stopped['reason']}"
    aside = ", ".join(f"{n:,} {what}" for n, what in ((found.waiting, "waiting"), (found.given_up, "given up")) if n)
    reading = stopped or _yes(found.active)
    return (found.name, str(found.position), f"{found.behind:,}", reading, _yes(found.missed), aside or "-")


def rewound_text(done: RewindResult) -> str:
    """Render the range of events that a subscriber reads again."""
    return f"{done.name} replays events after position {done.to}: {done.events:,} events (it was at {done.from_})"


def _compact(event: PublishedEvent) -> str:
    return json.dumps(event.payload, ensure_ascii=False, separators=(",", ":"))


def _yes(flag: bool) -> str:
    return "yes" if flag else "no"
