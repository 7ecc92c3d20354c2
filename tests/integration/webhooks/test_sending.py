"""Every durable event reaches its endpoint, or stands in the database with the reason, whatever the endpoint does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from contextlib import aclosing, suppress
from typing import Any
from uuid import uuid4

import pytest

import tasker
from tasker.services.event_subscriptions import Delivery
from tasker.template import compile_text
from tasker_webhooks.turns import Breaker
from tests.integration.webhooks.conftest import NAME, Senders
from tests.support.scripted_server import Reply, Scripted, reply, scripted_server

TEMPLATE = """
name: shop
namespace_name: shop
version: 1.0.0
identity_strategy: always_unique
steps:
  - {name: pay, handler: pay, publishes_events: [{name: shop.paid}]}
"""
TAKEN, BROKEN = reply(200, ""), reply(500, "")


async def published(app: tasker.App, count: int = 1) -> None:
    """So many events."""
    (plan,) = compile_text(TEMPLATE).plans
    for _ in range(count):
        await app.run(plan)


async def heard(senders: Senders, server: Scripted, count: int) -> list[Any]:
    async def bodies() -> list[Any]:
        return server.bodies()

    found: list[Any] = await senders.until(bodies, lambda each: len(each) >= count)
    return found


async def aside(senders: Senders, fits: Any) -> Sequence[Delivery]:
    found: Sequence[Delivery] = await senders.until(lambda: senders.app.domain_events.deliveries.list(NAME), fits)
    return found


async def test_each_event_is_posted_once_as_a_cloud_event(app: tasker.App, senders: Senders) -> None:
    async with scripted_server([TAKEN]) as server, senders.sending(server.url, at_once=1):
        await published(app, 3)
        bodies = await heard(senders, server, 3)

    events = (await app.domain_events.page()).events
    assert [each["id"] for each in bodies] == [event.event_id for event in events]
    assert bodies[0]["data"] == {"paid": True}
    assert (bodies[0]["specversion"], bodies[0]["type"], bodies[0]["stepname"]) == ("1.0", "shop.paid", "pay")
    assert await app.domain_events.deliveries.list() == []


async def test_one_that_fails_is_posted_again_and_holds_up_no_other(app: tasker.App, senders: Senders) -> None:
    async with scripted_server([BROKEN, TAKEN]) as server, senders.sending(server.url, at_once=1):
        await published(app, 2)
        bodies = await heard(senders, server, 3)
        await aside(senders, lambda found: not found)

    first, second = (event.event_id for event in (await app.domain_events.page()).events)
    assert bodies[0]["id"] == first
    assert sorted(each["id"] for each in bodies) == sorted([first, first, second])
    assert json.dumps(bodies[0]) in [json.dumps(each) for each in bodies[1:]], "the same body"


async def test_one_that_fails_for_good_waits_for_a_person_who_posts_it_again(app: tasker.App, senders: Senders) -> None:
    replies: list[Reply] = [BROKEN, BROKEN, BROKEN, TAKEN]
    async with scripted_server(replies) as server, senders.sending(server.url):
        await published(app)
        (given_up,) = await aside(senders, lambda found: [each for each in found if each.due_at is None])
        assert (given_up.attempts, given_up.error, len(server.heard)) == (3, "it answered 500", 3)

        assert await app.domain_events.deliveries.retry(NAME) == 1
        await aside(senders, lambda found: not found)

    assert len({each["id"] for each in server.bodies()}) == 1
    assert len(server.heard) == 4


async def test_a_killed_sender_s_events_are_posted_by_the_next_one(app: tasker.App, senders: Senders) -> None:
    async with scripted_server([TAKEN]) as server:
        async with senders.sending(server.url, at_once=1):
            pass
        await published(app, 2)
        async with senders.sending(server.url, at_once=1):
            bodies = await heard(senders, server, 2)

    assert [each["id"] for each in bodies] == [event.event_id for event in (await app.domain_events.page()).events]


async def test_of_two_senders_one_sends(app: tasker.App, senders: Senders) -> None:
    async with scripted_server([TAKEN]) as server, senders.sending(server.url, count=2):
        await published(app, 5)
        bodies = await heard(senders, server, 5)
        await asyncio.sleep(0.1)

    assert len({each["id"] for each in bodies}) == len(server.heard) == 5


async def test_an_endpoint_that_is_gone_is_stopped_and_says_why(app: tasker.App, senders: Senders) -> None:
    async with scripted_server([reply(410, ""), TAKEN]) as server, senders.sending(server.url, at_once=1):
        await published(app, 2)
        (found,) = await senders.until(app.domain_events.subscribers, lambda found: found[0].stopped)
        assert (found.stopped["by"], found.stopped["reason"], found.given_up) == ("tasker", "it answered 410", 1)

        assert await app.domain_events.deliveries.resume(NAME, actor="ann")
        await heard(senders, server, 2)

    assert len(server.heard) == 2


async def test_a_stopped_endpoint_gets_nothing_and_what_has_come_meanwhile_afterwards(
    app: tasker.App, senders: Senders
) -> None:
    async with scripted_server([TAKEN]) as server, senders.sending(server.url):
        assert await app.domain_events.deliveries.stop(NAME, actor="ann", reason="maintenance")
        assert not await app.domain_events.deliveries.stop(NAME, actor="bob", reason="again")
        await published(app, 2)
        await senders.until(app.domain_events.subscribers, lambda found: not found[0].active)
        assert server.heard == []

        assert await app.domain_events.deliveries.resume(NAME, actor="ann")
        wanted = {event.event_id for event in (await app.domain_events.page()).events}
        async with asyncio.timeout(20):
            while {each["id"] for each in server.bodies()} != wanted:
                await asyncio.sleep(0.02)


async def test_an_endpoint_that_fails_again_and_again_rests(app: tasker.App, senders: Senders) -> None:
    now = [0.0]
    breaker = Breaker(lambda: now[0])
    replies: list[Reply] = [BROKEN] * 5 + [TAKEN]
    async with scripted_server(replies) as server, senders.sending(server.url, breaker=breaker, at_once=1):
        await published(app, 6)
        await heard(senders, server, 5)
        with suppress(TimeoutError):
            async with asyncio.timeout(0.3):
                await heard(senders, server, 6)
        assert len(server.heard) == 5
        assert breaker.seconds > 20

    now[0] += 60
    assert breaker.seconds == 0
    assert breaker.failed() is False
    assert breaker.seconds > 40, "the next rest is twice as long"


@pytest.mark.parametrize("error", ["no \0 please", "a \ud800 lone", "\0" * 3000])
async def test_failure_with_characters_that_cannot_be_stored_is_recorded(app: tasker.App, error: str) -> None:
    deliveries = app.domain_events.deliveries
    await published(app)
    holder = str(uuid4())
    async with aclosing(app.domain_events.subscribe(NAME, holder=holder).events()) as events:
        assert await deliveries.put_aside(NAME, holder, await anext(events), error, None)

    (given_up,) = await deliveries.list(NAME)
    assert given_up.error == error.encode("utf-8", "backslashreplace").decode().replace("\0", "\\0")[:2000]


async def test_a_sender_without_the_lease_changes_nothing(app: tasker.App, senders: Senders) -> None:
    async with scripted_server([BROKEN]) as server, senders.sending(server.url, first_retry_seconds=1.0):
        await published(app)
        (waits,) = await aside(senders, lambda found: found)

    deliveries, stranger = app.domain_events.deliveries, "00000000-0000-7000-8000-000000000000"
    (event,) = (await app.domain_events.page()).events
    assert not await deliveries.put_aside(NAME, stranger, event, "x", None)
    assert not await deliveries.settle(NAME, stranger, event.event_id)
    assert (await deliveries.due(NAME, stranger, 10)).events == []
    assert [each.event_id for each in await deliveries.list(NAME)] == [waits.event_id]
