"""A new endpoint gets every event since the start of its process, however late its sender reaches the database."""

from __future__ import annotations

import asyncio

import psycopg

import tasker
from tasker_webhooks import Webhooks
from tasker_webhooks.signing import new_secret
from tasker_webhooks.table import Endpoint, WebhooksTable
from tests.integration.webhooks.conftest import Senders
from tests.integration.webhooks.test_isolation import LOOPBACK
from tests.integration.webhooks.test_sending import TAKEN, heard, published
from tests.support.scripted_server import scripted_server


async def test_new_endpoint_gets_events_of_the_time_before_its_sender_began(
    app: tasker.App, senders: Senders, database_url: str
) -> None:
    await published(app, 2)
    with psycopg.connect(database_url) as connection:
        connection.execute("update tasker.domain_events set created_at = created_at - interval '1 hour'")
    async with scripted_server([TAKEN]) as server:
        plugin, endpoint = Webhooks(), Endpoint(name="billing", url=server.url, secrets=(new_secret(),))
        plugin.tasker_configured(WebhooksTable(endpoints=(endpoint,), **LOOPBACK))
        run = plugin.tasker_background_jobs(database_url)
        assert run
        await published(app, 3)  # the plugin waits, as after an outage
        sending = asyncio.ensure_future(run())
        await published(app)
        bodies = await heard(senders, server, 4)
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)

    events = (await app.domain_events.page()).events
    assert {each["id"] for each in bodies} == {event.event_id for event in events[2:]}
