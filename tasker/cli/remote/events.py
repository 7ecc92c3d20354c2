"""Domain event service through a server."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from dataclasses import asdict
from typing import Any, Never

from tasker.client.http_client import HttpClient
from tasker.errors import UsageError
from tasker.operations.events import EventOperations
from tasker.operations.operation import RemoteService
from tasker.services.domain_events import EVERY
from tasker.views.events import EventFilter, EventPage, PublishedEvent
from tasker.views.incoming_events import SentEvent


class HttpIncomingEvents(RemoteService):
    """`tasker.services.incoming_events.IncomingEvents` through a server."""

    list = EventOperations.list_incoming_events
    _send = EventOperations.send_event

    async def send(self, namespace: str, name: str, payload: Any = None, *, by: str = "", **options: Any) -> SentEvent:
        """Send an event; the server records who sent it."""
        return await self._send(namespace, name, payload, **options)


class HttpDomainEvents(RemoteService):
    """`tasker.services.domain_events.DomainEventLog` through a server."""

    _client: HttpClient
    subscribers = EventOperations.list_event_subscribers
    replay = EventOperations.replay_events

    async def page(
        self, which: EventFilter = EVERY, *, after: int | None = None, limit: int = 50, newest: bool = False
    ) -> EventPage:
        page = await self._client.list_events(**_which(which), after=after, limit=limit, newest=newest)
        return EventPage(page.events, page.last or 0)

    async def withheld(self, which: EventFilter = EVERY, *, limit: int = 50) -> Sequence[PublishedEvent]:
        return (await self._client.list_events(**_which(which), limit=limit, withheld=True)).events

    async def follow(self, which: EventFilter = EVERY, *, after: int | None = None) -> AsyncGenerator[PublishedEvent]:
        async for event in self._client.stream_events(**_which(which), after=after):
            yield event

    def subscribe(self, name: str, which: EventFilter = EVERY, *, from_now: bool = False) -> Never:
        """Raise `UsageError`: a subscriber needs access to the database, which stores its position."""
        raise UsageError(
            "named subscribers need a database connection",
            hint="run the command where the database is reachable, or use --after instead of --subscriber",
        )


def _which(which: EventFilter) -> dict[str, Any]:
    fields = asdict(which)
    correlation = fields.pop("correlation")
    return {**fields, "correlation_id": correlation}
