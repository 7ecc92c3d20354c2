"""Following domain events, without a database."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from tasker.services import domain_events
from tasker.services.domain_events import DomainEventLog
from tasker.views.events import EventPage

QUIET_PAGES = 100
"""Pages without an event: more than a minute of polls."""
EVENT: Any = object()


class Log(DomainEventLog):
    """A log in which nothing is published for long."""

    def __init__(self) -> None:
        self.pages = 0

    async def page(self, *args: Any, **options: Any) -> EventPage:
        self.pages += 1
        return EventPage([EVENT] if self.pages > QUIET_PAGES else [], self.pages)


@pytest.mark.parametrize(("options", "first"), [({}, EVENT), ({"quiet_seconds": 15.0}, None)])
async def test_followers_get_events_only_unless_they_ask_for_heartbeats(
    options: dict[str, Any], first: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the client of a server does: what is the same service yields the same."""
    sleep = asyncio.sleep
    monkeypatch.setattr(domain_events.asyncio, "sleep", lambda seconds: sleep(0))
    async with aclosing(Log().follow(after=0, **options)) as events:
        assert await anext(events) is first
