"""Log of durable events: pages of it, and a stream of new events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import uuid4

from tasker.db.connection import Statements
from tasker.db.sql_files import query
from tasker.engine.exchange import CLAIM_BYTES
from tasker.errors import UsageError
from tasker.errors.remedies import see
from tasker.json_values import to_json
from tasker.services.audit import audited
from tasker.services.event_subscriptions import POLLS, EventDeliveries, Subscription
from tasker.views.events import MOST, EventFilter, EventPage, PublishedEvent, RewindResult, SubscriberStatus

EVERY = EventFilter()


class DomainEventLog:
    """Log of published events, ordered by `position`, which keeps the order of each task's events.

    `namespaces` restricts any of the methods to those; None allows all. All methods raise `UsageError` for invalid
    arguments, and `DatabaseError`.
    """

    def __init__(self, connection: Statements) -> None:
        self._connection, self.deliveries = connection, EventDeliveries(connection)

    async def page(
        self,
        which: EventFilter = EVERY,
        *,
        after: int | None = None,
        limit: int = 50,
        newest: bool = False,
        namespaces: Collection[str] | None = None,
    ) -> EventPage:
        """Return the first events after the position `after`, or the last ones with `newest`; at most `limit` (1 to
        1,000)."""
        if not 1 <= limit <= MOST or (after or 0) < 0:
            raise UsageError(f"a page has 1 to {MOST:,} events, behind a position from 0", hint="see limit and after")
        args = {**which.args(namespaces), "after": after or 0, "limit": limit, "newest": newest}
        return await self._read(args)

    async def callback_url(self, task_uuid: str) -> str | None:
        """Return the URL to which the end of a task is posted; None if it has none."""
        rows = await self._connection.execute(query("submission", "callback"), {"task": task_uuid})
        return str(rows[0][0]) if rows else None

    async def withheld(
        self, which: EventFilter = EVERY, *, limit: int = 50, namespaces: Collection[str] | None = None
    ) -> Sequence[PublishedEvent]:
        """Return declared events that were not published, each with the reason, the newest first."""
        args = {**which.args(namespaces), "limit": limit, "withheld": True}
        return (await self._read(args)).events

    async def follow(
        self,
        which: EventFilter = EVERY,
        *,
        after: int | None = None,
        quiet_seconds: float | None = None,
        namespaces: Collection[str] | None = None,
    ) -> AsyncGenerator[PublishedEvent | None]:
        """Yield every event after the position `after`, and each new one, as a client does.

        Without `after` it starts with the next new event. With `quiet_seconds` it yields None after so many seconds
        without an event. It ends only when it is closed.
        """
        position = (await self.page(limit=1, newest=True)).last if after is None else after
        polls, quiet = 0, 0.0
        while True:
            page = await self.page(which, after=position, limit=200, namespaces=namespaces)
            position = page.last
            for event in page.events:
                yield event
            if page.events:
                polls, quiet = 0, 0.0
                continue
            polls, quiet = polls + 1, quiet + POLLS.pause(polls)
            if quiet_seconds is not None and quiet > quiet_seconds:
                quiet = 0.0
                yield None
            await asyncio.sleep(POLLS.pause(polls))

    def subscribe(
        self,
        name: str,
        which: EventFilter = EVERY,
        *,
        holder: str | None = None,
        from_now: bool = False,
        seconds_ago: float = 0.0,
        lease_seconds: float = 30.0,
        standby_seconds: float = 1.0,
        namespaces: Collection[str] | None = None,
    ) -> Subscription:
        """Return the events of a subscriber from where it stopped; see `Subscription` (`async for event in ...`).

        `holder` is the reader's UUID, by default a new one. A new subscriber starts with the oldest retained event or,
        with `from_now`, with new events and those of the last `seconds_ago`. While another process reads, this one
        tries again every `standby_seconds`.
        """
        args = {"name": _checked(name), "holder": holder or str(uuid4()), "lease_ms": round(lease_seconds * 1000)}
        fitting = which.args(namespaces)

        async def read(after: int) -> EventPage:
            return await self._read({**fitting, "after": after, "limit": 100})

        begin = {"from_now": from_now, "ago_ms": round(seconds_ago * 1000)}
        return Subscription(self._call, read, args, begin, standby_seconds)

    async def subscribers(self) -> Sequence[SubscriberStatus]:
        """Return every subscriber, by name."""
        rows = (await self._call("subscribers", {}))["subscribers"]
        times = ({**row, "updated_at": datetime.fromisoformat(row["updated_at"])} for row in rows)
        return [SubscriberStatus(**row) for row in times]

    @audited("App.domain_events.replay", "_connection")
    async def replay(
        self, name: str, *, after: int | None = None, since: datetime | None = None, actor: str | None = None
    ) -> RewindResult:
        """Make a subscriber read again the events after a position, or from a time on. It never skips any."""
        if (after is None) == (since is None):
            raise UsageError("expected a position or a time", hint="pass exactly one of them")
        args = {"name": _checked(name), "position": after, "since": since.isoformat() if since else None}
        answer = await self._call("rewind", args)
        if not answer:
            raise UsageError(f"no subscriber {name!r}", hint=see("tasker events subscribers"))
        return RewindResult(name, answer["from"], answer["to"], answer["events"])

    async def _read(self, args: Mapping[str, Any]) -> EventPage:
        answer = await self._call("events", {**args, "max_bytes": CLAIM_BYTES})
        return EventPage([PublishedEvent(**row) for row in answer["events"]], answer["last"])

    async def _call(self, function: str, args: Mapping[str, Any]) -> dict[str, Any]:
        return await self._connection.call(f"tasker.{function}_v1(%s::jsonb)", to_json(args))


def _checked(name: str) -> str:
    if 1 <= len(name) <= 128 and name.isprintable():
        return name
    raise UsageError(f"{name!r:.60} is not a valid subscriber name", hint="1 to 128 printable characters")
