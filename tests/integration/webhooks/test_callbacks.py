"""The end of a task is posted to the URL that its submission names, signed and tried again as all events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest

import tasker
from tasker.errors import UsageError
from tasker.services.submission.submit import Submission
from tasker.template import compile_text
from tasker.template.plan import Plan
from tasker_webhooks import Webhooks
from tasker_webhooks.endpoints import EndpointsHere
from tasker_webhooks.posting import Poster
from tasker_webhooks.sending import SUBSCRIBER, CallbackSender
from tasker_webhooks.signing import new_secret
from tasker_webhooks.table import WebhooksTable
from tests.integration.webhooks.conftest import Senders
from tests.support.scripted_server import reply, scripted_server

TEMPLATE = """
name: shop
namespace_name: shop
version: 1.0.0
identity_strategy: always_unique
steps:
  - {name: pay, handler: pay}
"""
NAME = SUBSCRIBER + "callbacks"
TAKEN, BROKEN = reply(200, ""), reply(500, "")


def plan() -> Plan:
    return compile_text(TEMPLATE).plans[0]


def table(**more: Any) -> WebhooksTable:
    quick: dict[str, Any] = {"first_retry_seconds": 0.05, "longest_retry_seconds": 1.0, "attempts": 3}
    local = {"plain_http": True, "private_networks": ("127.0.0.0/8",)}
    return WebhooksTable(**{"callback_secrets": (new_secret(),), **quick, **local, **more})


@asynccontextmanager
async def sending(app: tasker.App, senders: Senders, settings: WebhooksTable) -> AsyncIterator[None]:
    running = asyncio.ensure_future(CallbackSender(settings, app.domain_events, Poster(settings)).run())
    try:
        await senders.until(app.domain_events.subscribers, lambda found: any(each.active for each in found))
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def bodies(senders: Senders, server: Any, count: int) -> list[Any]:
    async def heard() -> list[Any]:
        return list(server.bodies())

    found: list[Any] = await senders.until(heard, lambda each: len(each) >= count)
    return found


async def test_the_end_of_a_task_is_posted_to_its_url_by_every_way_to_submit(app: tasker.App, senders: Senders) -> None:
    async with scripted_server([TAKEN]) as server, sending(app, senders, table()):
        request = Submission({}, callback_url=server.url)
        tasks = [(await app.submit(plan(), {}, callback_url=server.url)).task_uuid]
        tasks += [str(each.task_uuid) for each in await app.submit_many(plan(), [request])]
        with psycopg.connect(app.database_url) as connection:
            tasks.append(tasker.submit_in(connection, plan(), {}, callback_url=server.url).task_uuid)
        await app.run(plan(), {})
        posted = await bodies(senders, server, 3)

    assert sorted(each["taskuuid"] for each in posted) == sorted(tasks)
    assert {each["type"] for each in posted} == {"task.completed"}
    assert posted[0]["data"]["status"] == "complete"
    assert server.url not in str(posted), "the URL may hold a token"


async def test_a_cancelled_task_is_posted_and_one_that_fails_is_posted_again(app: tasker.App, senders: Senders) -> None:
    async with scripted_server([BROKEN, TAKEN]) as server, sending(app, senders, table()):
        task = (await app.submit(plan(), {}, callback_url=server.url, delay="1h")).task_uuid
        await app.tasks.cancel(task)
        posted = await bodies(senders, server, 2)
        await senders.until(lambda: app.domain_events.deliveries.list(NAME), lambda found: not found)

    assert [(each["type"], each["taskuuid"]) for each in posted] == [("task.cancelled", task)] * 2
    assert posted[0]["id"] == posted[1]["id"]


async def test_a_url_that_answers_410_is_not_retried_and_others_are_posted(app: tasker.App, senders: Senders) -> None:
    servers = scripted_server([reply(410, "")]), scripted_server([TAKEN])
    async with servers[0] as gone, servers[1] as server, sending(app, senders, table()):
        await app.run(plan(), {}, callback_url=gone.url)
        await app.run(plan(), {}, callback_url=server.url)
        await bodies(senders, server, 1)
        (given_up,) = await senders.until(
            lambda: app.domain_events.deliveries.list(NAME, given_up=True), lambda found: len(found) == 1
        )
    assert (given_up.attempts, given_up.error) == (1, "it answered 410")


async def test_private_addresses_are_not_posted_to(app: tasker.App, senders: Senders) -> None:
    async with scripted_server([TAKEN]) as server, sending(app, senders, table(private_networks=(), attempts=1)):
        await app.run(plan(), {}, callback_url=server.url)
        (given_up,) = await senders.until(
            lambda: app.domain_events.deliveries.list(NAME), lambda found: len(found) == 1
        )
    assert "an address that is not public" in given_up.error
    assert server.bodies() == []


@pytest.mark.parametrize(
    "url",
    ["ftp://a.example", "https://", "https://u:p@a.example", "https://a.example/#x", "https://a b", 7, "x" * 3000],
)
async def test_what_is_no_url_is_refused(app: tasker.App, url: Any) -> None:
    with pytest.raises(UsageError, match="callback_url: "):
        await app.submit(plan(), {}, callback_url=url)


async def test_callback_url_without_a_sender_is_refused_by_every_submission(app: tasker.App, senders: Senders) -> None:
    url, says = "https://a.example/done", "no process posts to callback URLs"
    with pytest.raises(UsageError, match=says) as refused:
        await app.submit(plan(), {}, callback_url=url)
    assert "`webhooks`" in str(refused.value.hint)
    with pytest.raises(UsageError, match=says):
        await app.submit_many(plan(), [Submission({}, callback_url=url)])
    with psycopg.connect(app.database_url) as connection:
        with pytest.raises(UsageError, match=says):
            tasker.submit_in(connection, plan(), {}, callback_url=url)
        assert tasker.submit_in(connection, plan(), {}).created, "the transaction goes on"

    async with sending(app, senders, table()):
        pass
    assert (await app.submit(plan(), {}, callback_url=url)).created, "it restarts"
    with psycopg.connect(app.database_url, autocommit=True) as connection:
        connection.execute("update tasker.event_subscribers set updated_at = updated_at - interval '25 hours'")
    with pytest.raises(UsageError, match=says):
        await app.submit(plan(), {}, callback_url=url)


async def test_tasks_without_one_write_no_event(app: tasker.App) -> None:
    await app.run(plan(), {})
    assert (await app.domain_events.page()).events == []


async def test_operators_see_callbacks_as_an_endpoint(app: tasker.App) -> None:
    settings = table()
    (listed,) = await EndpointsHere(settings, app.domain_events).list()
    assert (listed.name, listed.url, listed.state) == ("callbacks", "the callback_url of each task", "new")
    with pytest.raises(UsageError, match="callbacks"):
        await EndpointsHere(settings, app.domain_events).test("callbacks")
    assert await EndpointsHere(table(callback_secrets=()), app.domain_events).list() == []
    plugin = Webhooks()
    plugin.tasker_configured(settings)
    assert plugin.tasker_background_jobs("postgresql://x/y") is not None
