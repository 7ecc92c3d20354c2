"""Every durable event reaches its endpoint, or stands in the database with the reason, whatever the endpoint does."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import pytest
import pytest_asyncio

import tasker
from tasker.contracts.backoff import Backoff
from tasker.handler import HandlerRegistry
from tasker.services.domain_events.deliveries import Delivery
from tasker.step_handler import step_handler
from tasker.template import compile_text
from tasker_webhooks.posting import Poster
from tasker_webhooks.sending import SUBSCRIBER, Breaker, Sender
from tasker_webhooks.signing import new_secret
from tasker_webhooks.table import Endpoint, WebhooksTable
from tests.support.scripted_server import Reply, Scripted, reply, scripted_server

TEMPLATE = """
name: shop
namespace_name: shop
version: 1.0.0
identity_strategy: always_unique
steps:
  - {name: pay, handler: pay, publishes_events: [{name: shop.paid}]}
"""
NAME = SUBSCRIBER + "billing"
TAKEN, BROKEN = reply(200, ""), reply(500, "")
WAIT_SECONDS = 20


@step_handler("pay")
async def pay() -> dict[str, bool]:
    return {"paid": True}


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tasker_webhooks.sending.LOOK_SECONDS", 0.1)
    monkeypatch.setattr("tasker_webhooks.sending.STANDBY_SECONDS", 0.1)
    monkeypatch.setattr("tasker_webhooks.sending.JOINING", Backoff(0.05, 0.05))


@pytest_asyncio.fixture
async def app(database_url: str) -> AsyncIterator[tasker.App]:
    registry = HandlerRegistry()
    registry.register("pay", pay)
    async with tasker.App(database_url, registry=registry) as running:
        yield running


async def published(app: tasker.App, count: int = 1) -> None:
    """So many events."""
    (plan,) = compile_text(TEMPLATE).plans
    for _ in range(count):
        await app.run(plan)


def settings(**more: Any) -> WebhooksTable:
    quick: dict[str, Any] = {"first_retry_seconds": 0.05, "longest_retry_seconds": 1.0, "attempts": 3}
    return WebhooksTable(plain_http=True, private_networks=("127.0.0.0/8",), **{**quick, **more})


class Patient(Breaker):
    """One that never opens."""

    failures_in_a_row = 1_000_000


def sender(app: tasker.App, url: str, *, breaker: Breaker | None = None, **more: Any) -> Sender:
    endpoint, table = Endpoint(name="billing", url=url, secrets=(new_secret(),)), settings(**more)
    return Sender(endpoint, table, app.domain_events, Poster(table), breaker or Patient())


@asynccontextmanager
async def sending(*senders: Sender) -> AsyncIterator[None]:
    running = [asyncio.ensure_future(each.run()) for each in senders]
    try:
        yield
    finally:
        for each in running:
            each.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def joined(app: tasker.App) -> None:
    """Wait until somebody sends."""
    await until(app, lambda: app.domain_events.subscribers(), lambda found: any(each.active for each in found))


async def until(app: tasker.App, ask: Any, fits: Any) -> Any:
    async with asyncio.timeout(WAIT_SECONDS):
        while not fits(found := await ask()):
            await asyncio.sleep(0.02)
    return found


async def heard(app: tasker.App, server: Scripted, count: int) -> list[Any]:
    async def bodies() -> list[Any]:
        return server.bodies()

    found: list[Any] = await until(app, bodies, lambda each: len(each) >= count)
    return found


async def aside(app: tasker.App, fits: Any) -> Sequence[Delivery]:
    found: Sequence[Delivery] = await until(app, lambda: app.domain_events.deliveries.list(NAME), fits)
    return found


async def test_each_event_is_posted_once_as_a_cloud_event(app: tasker.App) -> None:
    async with scripted_server([TAKEN]) as server, sending(sender(app, server.url)):
        await joined(app)
        await published(app, 3)
        bodies = await heard(app, server, 3)

    events = (await app.domain_events.page()).events
    assert [each["id"] for each in bodies] == [event.event_id for event in events]
    assert bodies[0]["data"] == {"paid": True}
    assert (bodies[0]["specversion"], bodies[0]["type"], bodies[0]["stepname"]) == ("1.0", "shop.paid", "pay")
    assert await app.domain_events.deliveries.list() == []


async def test_one_that_fails_is_posted_again_and_holds_up_no_other(app: tasker.App) -> None:
    async with scripted_server([BROKEN, TAKEN]) as server, sending(sender(app, server.url)):
        await joined(app)
        await published(app, 2)
        bodies = await heard(app, server, 3)
        await aside(app, lambda found: not found)

    first, second = (event.event_id for event in (await app.domain_events.page()).events)
    assert bodies[0]["id"] == first
    assert sorted(each["id"] for each in bodies) == sorted([first, first, second])
    assert json.dumps(bodies[0]) in [json.dumps(each) for each in bodies[1:]], "the same body"


async def test_one_that_fails_for_good_waits_for_a_person_who_posts_it_again(app: tasker.App) -> None:
    replies: list[Reply] = [BROKEN, BROKEN, BROKEN, TAKEN]
    async with scripted_server(replies) as server, sending(sender(app, server.url)):
        await joined(app)
        await published(app)
        (given_up,) = await aside(app, lambda found: [each for each in found if each.due_at is None])
        assert (given_up.attempts, given_up.error, len(server.heard)) == (3, "it answered 500", 3)

        assert await app.domain_events.deliveries.retry(NAME) == 1
        await aside(app, lambda found: not found)

    assert len({each["id"] for each in server.bodies()}) == 1
    assert len(server.heard) == 4


async def test_a_killed_sender_s_events_are_posted_by_the_next_one(app: tasker.App) -> None:
    async with scripted_server([TAKEN]) as server:
        async with sending(sender(app, server.url)):
            await joined(app)
        await published(app, 2)
        async with sending(sender(app, server.url)):
            bodies = await heard(app, server, 2)

    assert [each["id"] for each in bodies] == [event.event_id for event in (await app.domain_events.page()).events]


async def test_of_two_senders_one_sends(app: tasker.App) -> None:
    async with scripted_server([TAKEN]) as server, sending(sender(app, server.url), sender(app, server.url)):
        await joined(app)
        await published(app, 5)
        bodies = await heard(app, server, 5)
        await asyncio.sleep(0.1)

    assert len({each["id"] for each in bodies}) == len(server.heard) == 5


async def test_an_endpoint_that_is_gone_is_stopped_and_says_why(app: tasker.App) -> None:
    async with scripted_server([reply(410, ""), TAKEN]) as server, sending(sender(app, server.url)):
        await joined(app)
        await published(app, 2)
        (found,) = await until(app, app.domain_events.subscribers, lambda found: found[0].stopped)
        assert (found.stopped["by"], found.stopped["reason"], found.given_up) == ("tasker", "it answered 410", 1)

        assert await app.domain_events.deliveries.resume(NAME, by="ann")
        await heard(app, server, 2)

    assert len(server.heard) == 2


async def test_a_stopped_endpoint_gets_nothing_and_what_has_come_meanwhile_afterwards(app: tasker.App) -> None:
    async with scripted_server([TAKEN]) as server, sending(sender(app, server.url)):
        await joined(app)
        assert await app.domain_events.deliveries.stop(NAME, by="ann", reason="maintenance")
        assert not await app.domain_events.deliveries.stop(NAME, by="bob", reason="again")
        await published(app, 2)
        await until(app, app.domain_events.subscribers, lambda found: not found[0].active)
        assert len(server.heard) <= 1, "what was being read when it was stopped"

        assert await app.domain_events.deliveries.resume(NAME, by="ann")
        wanted = {event.event_id for event in (await app.domain_events.page()).events}
        async with asyncio.timeout(WAIT_SECONDS):
            while {each["id"] for each in server.bodies()} != wanted:
                await asyncio.sleep(0.02)


async def test_an_endpoint_that_fails_again_and_again_rests(app: tasker.App) -> None:
    now = [0.0]
    breaker = Breaker(lambda: now[0])
    async with scripted_server([BROKEN] * 5 + [TAKEN]) as server, sending(sender(app, server.url, breaker=breaker)):
        await joined(app)
        await published(app, 6)
        await heard(app, server, 5)
        with suppress(TimeoutError):
            async with asyncio.timeout(0.3):
                await heard(app, server, 6)
        assert len(server.heard) == 5
        assert breaker.seconds > 20

    now[0] += 60
    assert breaker.seconds == 0
    assert breaker.failed() is False
    assert breaker.seconds > 40, "the next rest is twice as long"


async def test_a_sender_without_the_lease_changes_nothing(app: tasker.App) -> None:
    async with scripted_server([BROKEN]) as server, sending(sender(app, server.url, first_retry_seconds=1.0)):
        await joined(app)
        await published(app)
        (waits,) = await aside(app, lambda found: found)

    deliveries, stranger = app.domain_events.deliveries, "00000000-0000-7000-8000-000000000000"
    (event,) = (await app.domain_events.page()).events
    assert not await deliveries.put_aside(NAME, stranger, event, "x", None)
    assert not await deliveries.settle(NAME, stranger, event.event_id)
    assert (await deliveries.due(NAME, stranger, 10)).events == []
    assert [each.event_id for each in await deliveries.list(NAME)] == [waits.event_id]
