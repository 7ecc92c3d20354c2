"""Domain events over HTTP: pages, a stream that is taken up again, subscribers; and the command line on both."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import aclosing

import httpx
import psycopg
import pytest
import pytest_asyncio
from click.testing import CliRunner

import tasker
from tasker.cli.main import cli
from tasker.client import HttpClient
from tasker.server.application import Options, application
from tasker.server.auth.authenticator import Authenticator
from tasker.server.auth.gate import ClosedGate
from tasker.server.sockets import HttpServer, listen
from tasker.services.event_subscriptions import SubscriptionLost
from tasker.settings.http import ApiKeyEntry, Auth
from tasker.template import compile_text
from tasker.views.events import EventFilter

TEMPLATE = """
name: till
namespace_name: shop
version: 1.0.0
steps:
  - name: pay
    handler: shop.check
    retry: {max_attempts: 1}
    publishes_events:
      - {name: shop.paid}
      - {name: shop.refused, condition: failure}
      - {name: shop.checked, condition: always, schema: {type: object, required: [nothing_like_that]}}
"""


@pytest_asyncio.fixture(loop_scope="module")
async def client(app: tasker.App) -> AsyncIterator[HttpClient]:
    server = HttpServer(application(app, Options(streams=2)), listen("127.0.0.1", 0), grace_seconds=5)
    await server.start()
    async with HttpClient(server.address) as made:
        yield made
    await server.stop()


async def test_what_was_published_is_read_in_pages_and_as_it_comes(app: tasker.App, client: HttpClient) -> None:
    (plan,) = compile_text(TEMPLATE).plans
    first = (await app.run(plan, {"amount": 3})).task_uuid

    page = await client.list_events(task=first)
    (event,) = page.events
    assert (event.type, event.event_name, event.subject) == ("shop.paid", "shop.paid", f"{first}/pay")
    assert page.last == event.position
    (withheld,) = (await client.list_events(task=first, withheld=True)).events
    assert "nothing_like_that" in (withheld.withheld or "")

    async with aclosing(client.stream_events(names=["shop.*"], after=0)) as stream:
        assert (await anext(stream)).event_id == event.event_id
        second = (await app.run(plan, {"amount": -1})).task_uuid
        refused = await anext(stream)
    assert (refused.event_name, refused.metadata["task_uuid"]) == ("shop.refused", second)
    async with aclosing(client.stream_events(after=event.position)) as stream:  # as one that was cut
        assert (await anext(stream)).event_id == refused.event_id

    found = await app.domain_events.page(EventFilter(names=["*.paid"], namespace="shop"))
    assert [each.event_id for each in found.events] == [event.event_id]
    assert (await app.domain_events.page(EventFilter(namespace="shop"), namespaces=["other"])).events == []


async def test_confined_caller_reads_the_events_of_their_namespaces_alone(app: tasker.App) -> None:
    keys = (
        ApiKeyEntry(key="everything", permissions=("*",), name="root"),
        ApiKeyEntry(key="confined", permissions=("*",), name="keeper", namespaces=("elsewhere",)),
    )
    gate = ClosedGate(Authenticator(Auth(enabled=True, api_keys_enabled=True, api_keys=keys)))
    server = HttpServer(application(app, Options(streams=2), gate), listen("127.0.0.1", 0), grace_seconds=5)
    for namespace in ("shop", "elsewhere"):
        (plan,) = compile_text(TEMPLATE.replace("namespace_name: shop", f"namespace_name: {namespace}")).plans
        await app.run(plan, {"amount": 3})

    kinds = ((False, False), (True, False), (False, True))  # from the beginning, the last ones, those not published

    async def read(key: str) -> list[set[str]]:
        async with HttpClient(server.address, api_key=key) as client:
            pages = [await client.list_events(newest=last, withheld=kept) for last, kept in kinds]
            async with aclosing(client.stream_events(after=0)) as stream:
                first = await anext(stream)
        return [{event.metadata["namespace"] for event in found} for found in (*(p.events for p in pages), [first])]

    await server.start()
    try:
        assert await read("everything") == [{"shop", "elsewhere"}] * 3 + [{"shop"}]
        assert await read("confined") == [{"elsewhere"}] * 4
    finally:
        await server.stop()


async def test_a_subscriber_is_seen_and_told_to_read_again(app: tasker.App, client: HttpClient) -> None:
    (plan,) = compile_text(TEMPLATE).plans
    await app.run(plan, {"amount": 5})
    last = (await client.list_events(limit=1, newest=True)).last
    async with aclosing(app.domain_events.subscribe("billing").events()) as events:
        async for event in events:
            if event.position == last:
                break

    (status,) = await client.list_event_subscribers()
    assert (status.name, status.behind, status.active) == ("billing", 1, False)
    assert (await client.replay_events("billing", after=0)).to == 0
    async with aclosing(app.domain_events.subscribe("billing").events()) as events:
        assert (await anext(events)).position == 1


async def test_a_subscriber_that_waits_for_events_is_put_out_when_it_is_told_to_read_again(app: tasker.App) -> None:
    (plan,) = compile_text(TEMPLATE).plans
    await app.run(plan, {"amount": 6})

    async def read() -> None:
        async for _ in app.domain_events.subscribe("idle", lease_seconds=0.3).events():
            pass

    async def behind() -> dict[str, int]:
        return {each.name: each.behind for each in await app.domain_events.subscribers() if each.active}

    async with asyncio.timeout(60):
        reading = asyncio.create_task(read())
        while await behind() != {"idle": 0}:
            await asyncio.sleep(0.01)
        await app.domain_events.replay("idle", after=0)
        with pytest.raises(SubscriptionLost):
            await reading
    assert (await behind()) == {}


async def test_the_command_line_shows_the_same_from_both(
    app: tasker.App, client: HttpClient, module_database_url: str
) -> None:
    (plan,) = compile_text(TEMPLATE).plans
    task = (await app.run(plan, {"amount": 7})).task_uuid
    command = ["events", "list", "--task", task, "--format", "json"]
    places = ["--database-url", module_database_url], ["--url", client.connection.server.url]
    invoke = CliRunner(env={"TASKER_URL": ""}).invoke
    shown = [await asyncio.to_thread(invoke, cli, [*command, *place]) for place in places]
    assert shown[0].stdout == shown[1].stdout
    assert [event["event_name"] for event in json.loads(shown[0].stdout)] == ["shop.paid"]


@pytest.mark.parametrize("place", ["--database-url", "--url"])
async def test_replay_since_reads_again_what_came_from_that_time_on(
    app: tasker.App, client: HttpClient, module_database_url: str, place: str
) -> None:
    (plan,) = compile_text(TEMPLATE).plans
    ids = [(await app.run(plan, {"amount": 8})).task_uuid for _ in range(3)]
    last = (await client.list_events(limit=1, newest=True)).last
    name = f"since {place}"
    with psycopg.connect(module_database_url) as connection:
        connection.execute("update tasker.domain_events set created_at = now() - interval '1 day'")
        for task, hours in zip(ids, (5, 3, 1), strict=True):
            aged = "update tasker.domain_events set created_at = now() - %s * interval '1 hour' where task_uuid = %s"
            connection.execute(aged, (hours, task))
        reader = "insert into tasker.event_subscribers (name, position, updated_at) values (%s, %s, now())"
        connection.execute(reader, (name, last))

    where = module_database_url if place == "--database-url" else client.connection.server.url
    invoke = CliRunner(env={"TASKER_URL": ""}).invoke
    for span, count in (("30m", 0), ("2h", 1), ("4h", 1), ("3h", 0)):
        command = ["events", "replay", name, "--since", span, "--format", "json", place, where]
        done = await asyncio.to_thread(invoke, cli, command)
        assert (done.exit_code, json.loads(done.stdout)["events"]) == (0, count), f"{span}: {done.output}"


async def test_a_position_that_no_event_can_have_is_a_mistake_and_no_error_of_the_server(client: HttpClient) -> None:
    beyond, stream = str(2**63), {"Accept": "text/event-stream"}
    async with httpx.AsyncClient(base_url=client.connection.server.url) as plain:
        answers = [
            await plain.get("/v1/events", params={"after": beyond}),
            await plain.get("/v1/events", headers={**stream, "Last-Event-ID": beyond}),
            await plain.post("/v1/events/subscribers/billing/replay", json={"after": 2**63}),
        ]
    assert [answer.status_code for answer in answers] == [400, 400, 400]


async def test_dealing_side_by_side_ends_with_a_group_of_what_went_wrong(app: tasker.App) -> None:
    (plan,) = compile_text(TEMPLATE).plans
    await app.run(plan, {"amount": 8})

    async def broken(event: object) -> None:
        raise KeyError("no book")

    async def lost(event: object) -> None:
        await app.domain_events.replay("side", after=0)

    async with asyncio.timeout(60):
        with pytest.raises(ExceptionGroup) as failed:
            await app.domain_events.subscribe("side", from_now=False).deal(broken, ahead=2)
        assert {type(each) for each in failed.value.exceptions} == {KeyError}  # of one event, or of both
        with pytest.raises(ExceptionGroup) as replayed:
            await app.domain_events.subscribe("side", from_now=False).deal(lost, ahead=1)
        assert {type(each) for each in replayed.value.exceptions} == {SubscriptionLost}
