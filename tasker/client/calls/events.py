"""Domain events over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from tasker.client.calls.paths import path
from tasker.client.connection import HttpConnection
from tasker.errors import RequestTimeout, ServerUnreachable

EVENTS = "/v1/events"
SUBSCRIBERS = "/v1/events/subscribers"
QUIET_SECONDS = 45.0
"""Seconds of silence after which a stream counts as lost: servers send a keep-alive every 15 seconds."""
AGAIN_SECONDS = 1.0


class DomainEventCalls:
    """Calls of the domain event API. Results are plain data as described by the OpenAPI document."""

    connection: HttpConnection

    async def list_events(
        self,
        *,
        names: Sequence[str] = (),
        namespace: str | None = None,
        task: str | None = None,
        correlation_id: str | None = None,
        since: datetime | None = None,
        after: int = 0,
        limit: int = 50,
        newest: bool = False,
        withheld: bool = False,
    ) -> dict[str, Any]:
        """Return a page of events: `events`, and the position `last` after which the next page begins."""
        which = _params(names, namespace, task, correlation_id, since)
        params = {**which, "after": after, "limit": limit, "newest": newest, "withheld": withheld}
        return dict(await self.connection.get(EVENTS, params))

    async def stream_events(
        self,
        *,
        names: Sequence[str] = (),
        namespace: str | None = None,
        task: str | None = None,
        correlation_id: str | None = None,
        since: datetime | None = None,
        after: int | None = None,
    ) -> AsyncGenerator[dict[str, Any]]:
        """Yield every event after the position `after`, or from now on.

        Once the stream has begun, a lost connection is reopened without limit at the last position.
        """
        params = _params(names, namespace, task, correlation_id, since)
        place, begun = after, False
        if place is None:
            place = int((await self.list_events(limit=1, newest=True))["last"])
        while True:
            try:
                async with aclosing(self._domain_events(params, place)) as events:
                    async for event in events:
                        place, begun = event["position"], True
                        yield event
                begun = True
            except (ServerUnreachable, RequestTimeout):
                if not begun:
                    raise
            await asyncio.sleep(AGAIN_SECONDS)

    async def list_event_subscribers(self) -> list[dict[str, Any]]:
        """Return the position of each subscriber."""
        return list(await self.connection.get(SUBSCRIBERS))

    async def replay_events(
        self, subscriber: str, *, after: int | None = None, since: datetime | None = None
    ) -> dict[str, Any]:
        """Move a subscriber back so that it reads again the events after a position, or since a time."""
        body = {"after": after, "since": since.isoformat() if since else None}
        return dict(await self.connection.send("POST", path(SUBSCRIBERS, subscriber, "replay"), body=body))

    async def _domain_events(self, params: dict[str, Any], after: int) -> AsyncGenerator[dict[str, Any]]:
        query = urlencode({name: value for name, value in params.items() if value is not None}, doseq=True)
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
        async with self.connection.stream(f"{EVENTS}?{query}", headers, QUIET_SECONDS) as answer:
            async for event in _read(answer.aiter_lines()):
                yield event


def _params(
    names: Sequence[str], namespace: str | None, task: str | None, correlation_id: str | None, since: datetime | None
) -> dict[str, Any]:
    which = {"name": list(names) or None, "namespace": namespace, "task": task, "correlation_id": correlation_id}
    return {**which, "since": since.isoformat() if since else None}


async def _read(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, Any]]:
    async for line in lines:
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))
