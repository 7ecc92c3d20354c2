"""What the broker sends ahead to a process: as much as it asks for, and nothing that others could work on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest_asyncio

from tasker.contracts.messaging import QueuedMessage
from tasker_rabbitmq.backend import EMPTY_LOOKS, LOOK_SECONDS
from tests.contract.rabbitmq_rig import Rig
from tests.support import brokers


@pytest_asyncio.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig(brokers.shared_url(brokers.RABBITMQ))
    await rig.backend.open()
    yield rig
    await rig.clean()


async def test_the_broker_sends_ahead_no_more_than_is_asked_for(rig: Rig) -> None:
    rival = rig.another()
    await rival.open()
    await rig.backend.create_queue("q")
    await rig.backend.send_messages("q", [b"%d" % n for n in range(20)])
    async with asyncio.timeout(30), aclosing(rig.backend.subscribe_many(["q"])) as news:
        await anext(news)
        while not (mine := await rig.backend.receive_messages("q", 2, 30)):
            await anext(news)
        feed = rig.backend._feeds["q"]
        theirs: list[QueuedMessage] = []
        while len(mine) + len(theirs) + len(feed.waiting) < 20:
            theirs += await rival.receive_messages("q", 20, 30)
        assert len(mine) + len(feed.waiting) <= 3, "the two that were asked for, and the one that was sent first"

        while not (more := await rig.backend.receive_messages("q", 50, 30)):
            await asyncio.sleep(0.02)
        assert feed.prefetch == 50
        assert more
    await rival.close()


async def test_what_was_sent_ahead_goes_back_although_some_of_it_is_taken_now_and_then(rig: Rig) -> None:
    rival = rig.another()
    await rival.open()
    await rig.backend.create_queue("q")
    async with asyncio.timeout(30), aclosing(rig.backend.subscribe_many(["q"])) as news:
        await anext(news)
        assert await rig.backend.receive_messages("q", 50, 30) == []  # as an idle worker asks
        await rig.backend.send_messages("q", [b"%d" % n for n in range(50)])
        theirs: list[QueuedMessage] = []
        while len(theirs) < 20:
            await rig.backend.receive_messages("q", 1, 30)
            theirs += await rival.receive_messages("q", 50, 30)
            await asyncio.sleep(0.1)
    await rival.close()


async def test_stats_allow_for_what_other_consumers_hold_until_the_queue_was_found_empty_some_times(rig: Rig) -> None:
    rival = rig.another()
    await rival.open()
    await rig.backend.create_queue("q")

    async def unseen() -> int:
        return (await rival.queue_stats("q")).unseen

    async with aclosing(rig.backend.subscribe_many(["q"])) as news:
        await anext(news)
        for _ in range(EMPTY_LOOKS - 1):
            assert await unseen() == 100, "the other may have what has just left the queue"
        assert await unseen() == 0
        rig.clock.seconds += 2 * LOOK_SECONDS
        assert await unseen() == 100, "nobody looked for so long that it may have been full meanwhile"
        assert (await rig.backend.queue_stats("q")).unseen == 0, "what it holds itself is counted"
        await rig.backend._feeds["q"].stop()
        await rival.send_message("q", b"{}")
        assert (await rig.backend.queue_stats("q")).unseen == 0, "also when nothing is pushed to it"
    await rival.close()
