"""Senders of webhooks that hurry, on a database with a program that publishes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import pytest_asyncio

import tasker
from tasker.clock import BackoffPolicy
from tasker.handlers.registry.registry import HandlerRegistry
from tasker.step_handler import step_handler
from tasker_webhooks.posting import Poster
from tasker_webhooks.sending import SUBSCRIBER, Sender
from tasker_webhooks.signing import new_secret
from tasker_webhooks.table import Endpoint, WebhooksTable
from tasker_webhooks.turns import Breaker

NAME = SUBSCRIBER + "billing"
WAIT_SECONDS = 20


@step_handler("pay")
async def pay() -> dict[str, bool]:
    return {"paid": True}


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasker_webhooks.sending.POLL_SECONDS", 0.1)
    monkeypatch.setattr("tasker_webhooks.sending.BUSY_SECONDS", 0.05)
    monkeypatch.setattr("tasker_webhooks.sending.STANDBY_SECONDS", 0.1)
    monkeypatch.setattr("tasker_webhooks.sending.JOINING", BackoffPolicy(0.05, 0.05))


@pytest_asyncio.fixture
async def app(database_url: str) -> AsyncIterator[tasker.App]:
    registry = HandlerRegistry()
    registry.register("pay", pay)
    async with tasker.App(database_url, registry=registry) as running:
        yield running


class Patient(Breaker):
    """One that never opens."""

    failures_in_a_row = 1_000_000


class Senders:
    """Makes senders of the endpoint `billing`, and waits for what they do."""

    def __init__(self, app: tasker.App) -> None:
        self.app = app

    def one(self, url: str, *, breaker: Breaker | None = None, at_once: int = 8, **more: Any) -> Sender:
        """A sender that tries again soon; `more` are settings of the plugin."""
        quick: dict[str, Any] = {"first_retry_seconds": 0.05, "longest_retry_seconds": 1.0, "attempts": 3, **more}
        table = WebhooksTable(plain_http=True, private_networks=("127.0.0.0/8",), **quick)
        endpoint = Endpoint(name="billing", url=url, secrets=(new_secret(),), at_once=at_once)
        return Sender(endpoint, table, self.app.domain_events, Poster(table), breaker or Patient())

    @asynccontextmanager
    async def sending(self, url: str, *, count: int = 1, **options: Any) -> AsyncIterator[None]:
        """So many of them, of which one has begun to send."""
        running = [asyncio.ensure_future(self.one(url, **options).run()) for _ in range(count)]
        try:
            await self.until(self.app.domain_events.subscribers, lambda found: any(each.active for each in found))
            yield
        finally:
            for each in running:
                each.cancel()
            await asyncio.gather(*running, return_exceptions=True)

    async def until(self, ask: Any, fits: Any) -> Any:
        """What `ask` answers, once it fits."""
        async with asyncio.timeout(WAIT_SECONDS):
            while not fits(found := await ask()):
                await asyncio.sleep(0.02)
        return found


@pytest.fixture
def senders(app: tasker.App) -> Senders:
    return Senders(app)
