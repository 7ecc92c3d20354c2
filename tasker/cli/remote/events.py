"""Domain event service through a server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Never

from tasker.client.calls.operations import decoded, decoded_list
from tasker.client.http_client import HttpClient
from tasker.errors import UsageError
from tasker.services.domain_events import EVERY
from tasker.views.events import EventFilter, EventPage, PublishedEvent, RewindResult, SubscriberStatus


class HttpDomainEvents:
    """`tasker.services.domain_events.DomainEventLog` through a server."""

    def __init__(self, client: HttpClient) -> None:
        self._client = client

    async def page(
        self, which: EventFilter = EVERY, *, after: int = 0, limit: int = 50, newest: bool = False
    ) -> EventPage:
        response = await self._client.list_events(**_which(which), after=after, limit=limit, newest=newest)
        return decoded(EventPage, response)

    async def withheld(self, which: EventFilter = EVERY, *, limit: int = 50) -> Sequence[PublishedEvent]:
        response = await self._client.list_events(**_which(which), limit=limit, withheld=True)
        return decoded_list(PublishedEvent, response["events"])

    async def follow(self, which: EventFilter = EVERY, *, after: int | None = None) -> AsyncGenerator[PublishedEvent]:
        async for event in self._client.stream_events(**_which(which), after=after):
            yield decoded(PublishedEvent, event)

    def subscribe(self, name: str, which: EventFilter = EVERY, *, from_now: bool = False) -> Never:
        """Raise `UsageError`: a subscriber needs access to the database, which stores its position."""
        raise UsageError(
            "named subscribers need a database connection",
            hint="run the command where the database is reachable, or use --after instead of --subscriber",
        )

    async def subscribers(self) -> Sequence[SubscriberStatus]:
        return decoded_list(SubscriberStatus, await self._client.list_event_subscribers())

    async def replay(self, name: str, *, after: int | None = None, since: datetime | None = None) -> RewindResult:
        return decoded(RewindResult, await self._client.replay_events(name, after=after, since=since))


def _which(which: EventFilter) -> dict[str, Any]:
    fields = asdict(which)
    correlation = fields.pop("correlation")
    return {**fields, "correlation_id": correlation}
