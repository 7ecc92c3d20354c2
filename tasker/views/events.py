"""Event as read from the log, and the filter of events."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from tasker.dataclasses import dataclass
from tasker.errors import UsageError
from tasker.errors.remedies import remedy
from tasker.views.model import published

MOST = 1000
"""Maximum number of events of a page."""


@dataclass(frozen=True, slots=True)
class PublishedEvent:
    """Durable event, with the attributes of CloudEvents 1.0 beside its own.

    `event_id` identifies the event: it is the same each time the event is delivered. `metadata` names its task and
    step, its `correlation_id`, its time (`fired_at`) and its publisher. `position` is its position among all events;
    for an event that was not published it is None, and `withheld` has the reason.
    """

    position: int | None
    specversion: str
    id: str
    source: str
    type: str
    subject: str
    time: str
    datacontenttype: str
    event_id: str
    event_name: str
    event_version: str
    payload: Mapping[str, Any] | None
    metadata: Mapping[str, Any]
    delivery_mode: str
    withheld: str | None


@dataclass(frozen=True, slots=True)
class EventFilter:
    """Filter of events; all given conditions must hold.

    `names` are patterns, of which one must fit: `*` stands for anything, dots too, `?` for one character.
    """

    names: Sequence[str] = ()
    namespace: str | None = None
    task: str | None = None
    correlation: str | None = None
    since: datetime | None = None

    def args(self, namespaces: Collection[str] | None = None) -> dict[str, Any]:
        """Return the filter as the engine takes it; `namespaces` are those permitted, None: all. Raises
        `UsageError`."""
        within = None if namespaces is None else sorted(namespaces)
        if self.namespace is not None:
            within = [self.namespace] if within is None or self.namespace in within else []
        return {
            "names": [_like(name) for name in self.names] or None,
            "namespaces": within,
            "task": _uuid("task", self.task),
            "correlation": _uuid("correlation id", self.correlation),
            "since": self.since.isoformat() if self.since else None,
        }


@dataclass(frozen=True, slots=True)
class EventPage:
    """Events in order. `last` is the position from which to continue: all matching events up to it have been read."""

    events: Sequence[PublishedEvent]
    last: int


@published("EventListResponse")
@dataclass(frozen=True, slots=True)
class EventList:
    """Page of events; `last` is the position to continue from, or null for events without a position."""

    events: Sequence[PublishedEvent]
    last: int | None


@dataclass(frozen=True, slots=True)
class SubscriberStatus:
    """Progress of a subscriber.

    `behind` counts the events that it has not read, up to 100,000; `missed`: some were pruned before it read them;
    `active`: a process reads in its name; `stopped`: by whom, when and why it was stopped. `waiting` events are retried
    later; `given_up` ones wait for an operator.
    """

    name: str
    position: int
    behind: int
    missed: bool
    active: bool
    updated_at: datetime
    stopped: Mapping[str, str] | None = None
    waiting: int = 0
    given_up: int = 0


@dataclass(frozen=True, slots=True)
class RewindResult:
    """Rewind of a subscriber from the position `from_` to `to`: it reads `events` events again."""

    name: str
    from_: int
    to: int
    events: int


def _like(pattern: str) -> str:
    escaped = pattern.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return escaped.replace("*", "%").replace("?", "_")


def _uuid(what: str, text: str | None) -> str | None:
    try:
        return None if text is None else str(UUID(text))
    except ValueError:
        raise UsageError(
            f"{text!r:.60} is no {what}", hint=remedy("expected a UUID; see {}", "tasker task show")
        ) from None
