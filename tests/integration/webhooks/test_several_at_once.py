"""An endpoint gets several requests at a time: slow ones hold up nobody, one task's stay in order, none is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

import tasker
from tasker.services.event_subscriptions import EventDeliveries
from tasker.template import compile_text
from tasker_webhooks import sending
from tests.integration.webhooks.conftest import NAME, Senders
from tests.support.servers.holding_server import Holding, holding_server

TEMPLATE = """
name: parcels
namespace_name: shop
version: 1.0.0
identity_strategy: always_unique
steps:
  - {name: pack, handler: pay, publishes_events: [{name: parcel.packed}]}
  - {name: send, handler: pay, dependencies: [pack], publishes_events: [{name: parcel.sent}]}
  - {name: track, handler: pay, dependencies: [send], publishes_events: [{name: parcel.tracked}]}
"""
ORDER = ["parcel.packed", "parcel.sent", "parcel.tracked"]
TAKEN, WAITS = 204, None


async def parcels(app: tasker.App, count: int) -> list[str]:
    """So many tasks with three events each."""
    (plan,) = compile_text(TEMPLATE).plans
    return [(await app.run(plan)).task_uuid for _ in range(count)]


def names(bodies: Sequence[dict[str, Any]], task: str) -> list[str]:
    return [each["type"] for each in bodies if each["taskuuid"] == task]


def ids(bodies: Sequence[dict[str, Any]]) -> list[str]:
    return [each["id"] for each in bodies]


async def settled(senders: Senders) -> None:
    """Wait until every event is dealt with."""
    await senders.until(senders.app.domain_events.subscribers, lambda found: found and found[0].behind == 0)


def first_events(server: Holding, tasks: Sequence[str]) -> bool:
    return {each["taskuuid"] for each in server.waiting} == {*tasks}


async def test_events_of_several_tasks_are_under_way_together_and_those_of_each_in_order(senders: Senders) -> None:
    async with holding_server() as server, senders.sending(server.url, at_once=3):
        tasks = await parcels(senders.app, 3)
        await server.until(lambda: first_events(server, tasks))
        assert [names(server.waiting, task) for task in tasks] == [ORDER[:1]] * 3

        await server.decide(lambda _: TAKEN)
        await server.until(lambda: len(server.answered) == 9)
        await settled(senders)

    assert [names(server.answered, task) for task in tasks] == [ORDER] * 3
    assert len({*ids(server.answered)}) == 9


async def test_one_that_waits_for_its_answer_holds_up_its_own_task_alone(senders: Senders) -> None:
    async with holding_server() as server, senders.sending(server.url, at_once=2):
        slow, *others = await parcels(senders.app, 4)
        await server.decide(lambda body: WAITS if body["taskuuid"] == slow else TAKEN)
        await server.until(lambda: len(server.answered) == 9 and len(server.waiting) == 1)
        assert [names(server.answered, task) for task in others] == [ORDER] * 3

        await server.decide(lambda _: TAKEN)
        await server.until(lambda: len(server.answered) == 12)

    assert names(server.answered, slow) == ORDER


async def test_with_at_once_one_all_come_in_their_order(senders: Senders) -> None:
    async with holding_server() as server, senders.sending(server.url, at_once=1):
        await parcels(senders.app, 2)
        most = 0

        def answer(_: dict[str, Any]) -> int:
            nonlocal most
            most = max(most, len(server.waiting))
            return TAKEN

        await server.decide(answer)
        await server.until(lambda: len(server.answered) == 6)

    assert most == 1
    assert ids(server.answered) == [each.event_id for each in (await senders.app.domain_events.page()).events]


async def test_after_a_crash_in_the_middle_what_was_not_answered_comes_again_and_nothing_is_lost(
    senders: Senders,
) -> None:
    async with holding_server() as server:
        async with senders.sending(server.url, at_once=4):
            slow, *others = await parcels(senders.app, 3)
            await server.decide(lambda body: WAITS if body["taskuuid"] == slow else TAKEN)
            await server.until(lambda: len(server.answered) == 6 and len(server.waiting) == 1)
        before = ids(server.answered)
        await server.decide(lambda _: TAKEN)
        async with senders.sending(server.url, at_once=4):
            await settled(senders)

    events = [each.event_id for each in (await senders.app.domain_events.page()).events]
    assert {*ids(server.answered)} == {*events}
    assert {*before} == {*events[3:]}, "those of the others were taken before"
    assert names(server.answered, slow)[-3:] == ORDER
    assert all(names(server.answered, task)[:3] == ORDER for task in others)


async def test_what_fails_is_tried_again_several_at_a_time_until_it_is_taken(senders: Senders) -> None:
    async with holding_server() as server, senders.sending(server.url, at_once=8, attempts=50):
        await server.decide(lambda _: 500)
        tasks = await parcels(senders.app, 4)
        await server.until(lambda: len(server.answered) >= 12)
        await server.decide(lambda _: WAITS)
        await server.until(lambda: first_events(server, tasks))

        await server.decide(lambda _: TAKEN)
        await settled(senders)
        await senders.until(lambda: senders.app.domain_events.deliveries.list(NAME), lambda found: not found)

    events = {each.event_id for each in (await senders.app.domain_events.page()).events}
    assert {*ids(server.answered)} == events


async def test_a_disabled_endpoint_gets_what_was_under_way_and_then_nothing(senders: Senders) -> None:
    deliveries = senders.app.domain_events.deliveries
    async with holding_server() as server, senders.sending(server.url, at_once=4):
        first, _ = await parcels(senders.app, 2)
        await server.until(lambda: len(server.waiting) == 2)
        await deliveries.stop(NAME, actor="ann", reason="maintenance")
        await server.decide(lambda body: TAKEN if body["type"] == "parcel.packed" else WAITS)
        await senders.until(senders.app.domain_events.subscribers, lambda found: not found[0].active)
        assert "parcel.tracked" not in {each["type"] for each in server.came}
        assert len(server.answered) <= 2

        await deliveries.resume(NAME, actor="ann")
        await server.decide(lambda _: TAKEN)
        await settled(senders)

    events = {each.event_id for each in (await senders.app.domain_events.page()).events}
    assert {*ids(server.answered)} == events
    assert names(server.answered, first)[-3:] == ORDER


async def test_an_endpoint_that_is_gone_gets_nothing_after_it_has_said_so(
    senders: Senders, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the database takes longer to keep that it is than a sender waits for what is under way."""
    keep = EventDeliveries.stop

    async def slowly(self: EventDeliveries, name: str, *, actor: str, reason: str) -> bool:
        await asyncio.sleep(3 * sending.POLL_SECONDS)
        return await keep(self, name, actor=actor, reason=reason)

    monkeypatch.setattr(EventDeliveries, "stop", slowly)
    async with holding_server() as server, senders.sending(server.url, at_once=2):
        await parcels(senders.app, 3)
        await server.until(lambda: len(server.waiting) == 2)
        gone = server.waiting[0]["id"]
        await server.decide(lambda body: 410 if body["id"] == gone else WAITS)
        await senders.until(senders.app.domain_events.subscribers, lambda found: found[0].stopped)
        assert (ids(server.answered), len(server.came)) == ([gone], 2)

        await server.decide(lambda _: TAKEN)
        await senders.app.domain_events.deliveries.resume(NAME, actor="ann")
        await settled(senders)

    events = {each.event_id for each in (await senders.app.domain_events.page()).events}
    assert {*ids(server.answered)} == events


@pytest.mark.parametrize("at_once", [0, 101])
def test_how_many_has_bounds(at_once: int) -> None:
    from tasker.settings.table import InvalidTable
    from tasker_webhooks.signing import new_secret
    from tasker_webhooks.table import Endpoint

    with pytest.raises(InvalidTable):
        Endpoint.parse({"name": "billing", "url": "https://example.com", "secrets": [new_secret()], "at_once": at_once})


async def test_a_task_s_next_event_waits_for_the_answer_to_the_last_one(senders: Senders) -> None:
    async with holding_server() as server, senders.sending(server.url, at_once=8):
        (task,) = await parcels(senders.app, 1)
        for count in range(3):
            await server.until(lambda count=count: len(server.answered) == count and len(server.waiting) == 1)
            assert names(server.waiting, task) == ORDER[count : count + 1]
            allowed = ORDER[: count + 1]
            await server.decide(lambda body, allowed=allowed: TAKEN if body["type"] in allowed else WAITS)
        await settled(senders)
    await asyncio.sleep(0)
    assert names(server.answered, task) == ORDER
