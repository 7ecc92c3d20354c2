"""Endpoints are isolated: what one answers, and what one sender raises, stops no other endpoint and loses no event."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

import tasker
from tasker_webhooks.posting import Answer, Poster
from tasker_webhooks.sending import SUBSCRIBER, Sender, send_all
from tasker_webhooks.signing import new_secret
from tasker_webhooks.table import Endpoint, WebhooksTable
from tests.integration.webhooks.conftest import NAME, Senders
from tests.integration.webhooks.test_sending import TAKEN, heard, published
from tests.support.scripted_server import reply, scripted_server

LOOPBACK: dict[str, Any] = {"plain_http": True, "private_networks": ("127.0.0.0/8",)}


class FailingOnce(Poster):
    """Poster with a defect that shows at its first request."""

    failed = False

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        """Raise once, then post."""
        if not self.failed:
            self.failed = True
            raise RuntimeError("a defect")
        return await super().post(url, body, headers)


async def test_malformed_redirect_counts_attempts_and_stops_no_other_endpoint(
    app: tasker.App, senders: Senders, database_url: str
) -> None:
    async with (
        scripted_server([TAKEN]) as good,
        scripted_server([reply(307, "", location="http://[::1")]) as malformed,
        scripted_server([reply(307, "", location="http://127.0.0.1:99999/")]) as beyond,
    ):
        urls = {"good": good.url, "malformed": malformed.url, "beyond": beyond.url}
        endpoints = tuple(Endpoint(name=name, url=url, secrets=(new_secret(),)) for name, url in urls.items())
        table = WebhooksTable(endpoints=endpoints, attempts=2, first_retry_seconds=0.05, **LOOPBACK)
        sending = asyncio.ensure_future(send_all(database_url, table))
        await senders.until(app.domain_events.subscribers, lambda found: len(found) == 3)
        await published(app, 2)
        await heard(senders, good, 2)
        await senders.until(
            app.domain_events.subscribers,
            lambda found: (
                {each.name: each.given_up for each in found}
                == {SUBSCRIBER + "good": 0, SUBSCRIBER + "malformed": 2, SUBSCRIBER + "beyond": 2}
            ),
        )
        await published(app)
        await heard(senders, good, 3)
        assert not sending.done()
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
    assert len(good.heard) == 3
    assert len(malformed.heard) >= 4


async def test_sender_that_dies_is_restarted_and_logged(
    app: tasker.App, senders: Senders, caplog: pytest.LogCaptureFixture
) -> None:
    async with scripted_server([TAKEN]) as server:
        table = WebhooksTable(**LOOPBACK)
        endpoint = Endpoint(name="billing", url=server.url, secrets=(new_secret(),))
        running = asyncio.ensure_future(Sender(endpoint, table, app.domain_events, FailingOnce(table)).run())
        await senders.until(app.domain_events.subscribers, lambda found: [each.name for each in found] == [NAME])
        await published(app)
        (body,) = await heard(senders, server, 1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    (event,) = (await app.domain_events.page()).events
    assert body["id"] == event.event_id
    (failure,) = [each for each in caplog.records if each.message.startswith("webhook_sender_failed")]
    assert failure.message == "webhook_sender_failed endpoint=billing error=RuntimeError('a defect'); it is restarted"
    assert failure.exc_info
