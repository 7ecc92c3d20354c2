"""Domain events over HTTP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Any
from urllib.parse import urlencode

from tasker.client.calls.operations import OperationCalls, decoded
from tasker.errors import RequestTimeout, ServerUnreachable
from tasker.operations.events import EVENTS, EventOperations
from tasker.views.events import PublishedEvent

QUIET_SECONDS = 45.0
"""Seconds of silence after which a stream counts as lost: servers send a keep-alive every 15 seconds."""
AGAIN_SECONDS = 1.0


class DomainEventCalls(OperationCalls, EventOperations):
    """Calls of the domain event API."""

    async def stream_events(
        self,
        *,
        names: Sequence[str] = (),
        namespace: str | None = None,
        task: str | None = None,
        correlation_id: str | None = None,
        since: datetime | None = None,
        after: int | None = None,
    ) -> AsyncGenerator[PublishedEvent]:
        """Yield every event after the position `after`, or from now on.

        Once the stream has begun, a lost connection is reopened without limit at the last position.
        """
        params = _params(names, namespace, task, correlation_id, since)
        place, begun = after, False
        if place is None:
            place = (await self.list_events(limit=1, newest=True)).last or 0
        while True:
            try:
                async with aclosing(self._domain_events(params, place)) as events:
                    async for event in events:
                        place, begun = event.position or place, True
                        yield event
                begun = True
            except (ServerUnreachable, RequestTimeout):
                if not begun:
                    raise
            await asyncio.sleep(AGAIN_SECONDS)

    async def _domain_events(self, params: dict[str, Any], after: int) -> AsyncGenerator[PublishedEvent]:
        query = urlencode({name: value for name, value in params.items() if value is not None}, doseq=True)
        headers = {"Accept": "text/event-stream", "Last-Event-ID": str(after)}
        async with self.connection.stream(f"{EVENTS}?{query}", headers, QUIET_SECONDS) as answer:
            async for event in _read(answer.aiter_lines()):
                yield decoded(PublishedEvent, event)


def _params(
    names: Sequence[str], namespace: str | None, task: str | None, correlation_id: str | None, since: datetime | None
) -> dict[str, Any]:
    which = {"name": list(names) or None, "namespace": namespace, "task": task, "correlation_id": correlation_id}
    return {**which, "since": since.isoformat() if since else None}


async def _read(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, Any]]:
    async for line in lines:
        if line.startswith("data: "):
            yield json.loads(line.removeprefix("data: "))
