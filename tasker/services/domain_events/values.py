"""An event as it is read, and which events are meant."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from tasker.contracts.dataclasses import dataclass
from tasker.errors import UsageError

MOST = 1000
"""Events of one page at most."""


@dataclass(frozen=True, slots=True)
class PublishedEvent:
    """A durable event, with the attributes of CloudEvents 1.0 beside its own.

    `event_id` tells an event from every other one: it is the same each time the event is delivered. `metadata` says
    which task and step it is of, its `correlation_id`, when (`fired_at`) and by whom. `position` is its place among all
    events; None, with the reason in `withheld`, for one that was not published.
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
    """Which events are meant: all of what is given must fit.

    `names` are patterns, of which one must fit: `*` stands for anything, dots too, `?` for one character.
    """

    names: Sequence[str] = ()
    namespace: str | None = None
    task: str | None = None
    correlation: str | None = None
    since: datetime | None = None

    def args(self, namespaces: Collection[str] | None = None) -> dict[str, Any]:
        """As the engine takes them; `namespaces` are those that may be read, None: all. Raises `UsageError`."""
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
    """Events in their order. `last` is where to go on: up to there everything that fits is known."""

    events: Sequence[PublishedEvent]
    last: int


@dataclass(frozen=True, slots=True)
class SubscriberStatus:
    """How far a subscriber has come. `behind` counts the events that it has not read, to 100,000; `missed`: some were
    pruned before it read them; `active`: somebody reads in its name; `stopped`: by whom, when and why nobody may.
    `waiting` events are tried again later, `given_up` ones wait for a person."""

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
    """A subscriber reads `events` again, behind the position `to`; it stood at `from_`."""

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
        raise UsageError(f"{text!r:.60} is no {what}", hint="it is a UUID, as `tasker task show` tells") from None
