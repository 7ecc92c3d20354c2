"""What the broker sends ahead to a process: as much as it asks for, and nothing that others could work on."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager, suppress
from typing import Any

import pytest
import pytest_asyncio
from aiormq import Channel

from tasker.errors import BackendUnavailable
from tasker.messaging.port import QueuedMessage
from tasker_rabbitmq import polling
from tasker_rabbitmq.backend import EMPTY_POLLS, STATS_SECONDS, RabbitmqBackend
from tasker_rabbitmq.link import PUBLISH, Link
from tasker_rabbitmq.received import Feed, new_ids
from tasker_rabbitmq.settings import RabbitmqSettings
from tests.contract.rabbitmq_rig import Rig, Unwritten
from tests.support.servers import brokers


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


@asynccontextmanager
async def idle_beside_a_rival(rig: Rig) -> AsyncIterator[RabbitmqBackend]:
    """The rig's backend has asked for 50 messages, as an idle worker does; the other process is yielded."""
    rival = rig.another()
    await rival.open()
    await rig.backend.create_queue("q")
    async with aclosing(rig.backend.subscribe_many(["q"])) as news:
        await anext(news)
        assert await rig.backend.receive_messages("q", 50, 30) == []
        yield rival
    await rival.close()


async def test_what_was_sent_ahead_goes_back_although_some_of_it_is_taken_now_and_then(rig: Rig) -> None:
    async with asyncio.timeout(30), idle_beside_a_rival(rig) as rival:
        await rig.backend.send_messages("q", [b"%d" % n for n in range(50)])
        theirs: list[QueuedMessage] = []
        while len(theirs) < 20:
            await rig.backend.receive_messages("q", 1, 30)
            theirs += await rival.receive_messages("q", 50, 30)
            await asyncio.sleep(0.1)


async def test_what_was_sent_ahead_and_not_taken_counts_as_never_received(rig: Rig) -> None:
    async with asyncio.timeout(30), idle_beside_a_rival(rig) as rival:
        await rig.backend.send_messages("q", [b"%d" % n for n in range(20)])
        while len(rig.backend._feeds["q"].waiting) < 20:
            await asyncio.sleep(0.02)
        theirs: list[QueuedMessage] = []
        while len(theirs) < 20:  # nobody takes them where they are
            theirs += await rival.receive_messages("q", 50, 30)
        assert {message.payload for message in theirs} == {b"%d" % n for n in range(20)}
        assert {message.read_count for message in theirs} == {1}


async def test_what_was_sent_ahead_goes_back_although_no_copy_of_it_can_be_sent(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is copied second by second, as it was sent: the rest would stay with a process that knows of it no more."""
    async with asyncio.timeout(30), idle_beside_a_rival(rig) as rival:
        for _ in range(3):
            await rig.backend.send_messages("q", [b"%d" % rig.clock.seconds])
            rig.clock.seconds += 1
        feed = rig.backend._feeds["q"]
        feed._asked_at = time.monotonic() + 3600  # it never ceases to ask
        while len(feed.waiting) < 3:
            await asyncio.sleep(0.02)
        with monkeypatch.context() as patch:
            patch.setattr(await rig.backend._link.channel(PUBLISH), "write_queue", Unwritten())
            with pytest.raises(BackendUnavailable):
                await feed.stop()

        theirs: list[QueuedMessage] = []
        while len(theirs) < 3:
            theirs += await rival.receive_messages("q", 50, 30)


async def test_what_was_sent_ahead_falls_to_what_is_asked_for_now_and_ends_when_nobody_asks(rig: Rig) -> None:
    async with asyncio.timeout(30), idle_beside_a_rival(rig) as rival:
        feed = rig.backend._feeds["q"]
        feed._asked_at = time.monotonic() + 3600  # it never ceases to ask
        await rig.backend.send_messages("q", [b"%d" % n for n in range(50)])
        while len(feed.waiting) < 50:
            await asyncio.sleep(0.02)
        mine = await rig.backend.receive_messages("q", 2, 30)
        feed._asked_at = time.monotonic() + 3600
        while feed.prefetch != 2 or len(feed.waiting) > 4:
            await asyncio.sleep(0.02)
        assert feed.running, "no other consumer is needed for what is asked for next"
        assert len(feed.waiting) >= 2, "what is asked for next stays"

        feed._asked_at = 0.0
        theirs: list[QueuedMessage] = []
        while len(mine) + len(theirs) < 50:
            theirs += await rival.receive_messages("q", 50, 30)
        assert not feed.running


async def test_a_subscription_that_ends_while_more_is_asked_for_leaves_no_consumer(rig: Rig) -> None:
    rival = rig.another()
    await rival.open()
    await rig.backend.create_queue("q")
    async with asyncio.timeout(30):
        async with aclosing(rig.backend.subscribe_many(["q"])) as news:
            await anext(news)
            await rig.backend._link.consuming.acquire()  # a consumer is under way
            asking = asyncio.create_task(rig.backend.receive_messages("q", 50, 30))
            while not rig.backend._link.consuming._waiters:
                await asyncio.sleep(0)
        rig.backend._link.consuming.release()
        assert await asking == []
        assert (await rival.queue_stats("q")).consumers == 0
    await rival.close()


async def test_of_two_that_ask_at_once_the_one_that_wants_less_does_not_lower_the_other(rig: Rig) -> None:
    await rig.backend.create_queue("q")
    async with asyncio.timeout(30), aclosing(rig.backend.subscribe_many(["q"])) as news:
        await anext(news)
        async with rig.backend._link.consuming:
            asking = [asyncio.create_task(rig.backend.receive_messages("q", limit, 30)) for limit in (50, 20)]
            while len(rig.backend._link.consuming._waiters or ()) < 2:
                await asyncio.sleep(0)
        await asyncio.gather(*asking)
        assert rig.backend._feeds["q"].prefetch == 50


async def test_polling_that_is_cancelled_leaves_no_consumer(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(polling, "STRAGGLER_SECONDS", 60)
    await rig.backend.create_queue("q")
    feed = Feed(rig.backend._link, rig.backend._topology.name("q"), new_ids())
    async with asyncio.timeout(30):
        burst = asyncio.create_task(polling._burst(feed, 2))
        while not feed.running:
            await asyncio.sleep(0.02)
        burst.cancel()
        await asyncio.wait([burst])
        assert (await rig.backend.queue_stats("q")).consumers == 0


async def test_what_arrives_while_polling_ends_is_taken_with_the_rest(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It went back as a copy; where none could be sent, what had arrived before was forgotten."""
    link, basic_cancel = rig.backend._link, Channel.basic_cancel
    await rig.backend.create_queue("q")
    await rig.backend.send_message("q", b"in time")
    feed = Feed(link, rig.backend._topology.name("q"), new_ids())

    async def late(channel: Channel, *args: Any, **options: Any) -> Any:
        before = len(feed.waiting)
        await rig.backend.send_message("q", b"late")
        while len(feed.waiting) == before:
            await asyncio.sleep(0.02)
        monkeypatch.setattr(await link.channel(PUBLISH), "write_queue", Unwritten())
        return await basic_cancel(channel, *args, **options)

    monkeypatch.setattr(Channel, "basic_cancel", late)
    async with asyncio.timeout(30):
        receipts = await polling._burst(feed, 3)
    assert [receipt.body for receipt in receipts] == [b"in time", b"late"]


async def taken_by_another(rig: Rig, count: int) -> set[bytes]:
    """What another process gets, which asks until it has so many."""
    rival, bodies = rig.another(), set[bytes]()
    await rival.open()
    async with asyncio.timeout(30):
        while len(bodies) < count:
            bodies |= {message.payload for message in await rival.receive_messages("q", 10, 30)}
    await rival.close()
    return bodies


async def test_a_look_that_is_cancelled_while_its_message_arrives_gives_it_back_at_once(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    arrived, may_go_on, get = asyncio.Event(), asyncio.Event(), Channel.basic_get

    async def slow_get(channel: Channel, *args: Any, **options: Any) -> Any:
        found = await get(channel, *args, **options)
        arrived.set()
        await may_go_on.wait()
        return found

    await rig.backend.create_queue("q")
    await rig.backend.send_messages("q", [b"held", b"one"])
    (held,) = await rig.backend.receive_messages("q", 1, 30)
    monkeypatch.setattr(Channel, "basic_get", slow_get)
    look = asyncio.create_task(rig.backend.receive_messages("q", 1, 30))
    await asyncio.wait_for(arrived.wait(), 30)
    look.cancel()
    await asyncio.wait([look])
    assert look.cancelled()
    may_go_on.set()
    assert await taken_by_another(rig, 1) == {b"one"}
    assert await rig.backend.ack_message("q", held.message_id), "what came by the same channel is still held"


async def test_a_look_that_is_cancelled_while_it_waits_for_more_gives_back_what_it_has(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits = asyncio.Event()

    async def burst(*args: Any) -> list[Any]:
        waits.set()
        await asyncio.Event().wait()
        return []

    await rig.backend.create_queue("q")
    await rig.backend.send_messages("q", [b"one", b"two"])
    monkeypatch.setattr(polling, "_burst", burst)
    look = asyncio.create_task(rig.backend.receive_messages("q", 2, 30))
    await asyncio.wait_for(waits.wait(), 30)
    look.cancel()
    await asyncio.wait([look])
    monkeypatch.undo()
    assert await taken_by_another(rig, 2) == {b"one", b"two"}


async def test_stats_allow_for_what_other_consumers_hold_until_the_queue_was_found_empty_some_times(rig: Rig) -> None:
    rival = rig.another()
    await rival.open()
    await rig.backend.create_queue("q")

    async def unseen() -> int:
        return (await rival.queue_stats("q")).unseen

    async with aclosing(rig.backend.subscribe_many(["q"])) as news:
        await anext(news)
        for _ in range(EMPTY_POLLS - 1):
            assert await unseen() == 100, "the other may have what has just left the queue"
        assert await unseen() == 0
        rig.clock.seconds += 2 * STATS_SECONDS
        assert await unseen() == 100, "nobody looked for so long that it may have been full meanwhile"
        assert (await rig.backend.queue_stats("q")).unseen == 0, "what it holds itself is counted"
        await rig.backend._feeds["q"].stop()
        await rival.send_message("q", b"{}")
        assert (await rig.backend.queue_stats("q")).unseen == 0, "also when nothing is pushed to it"
    await rival.close()


async def test_what_is_sent_ahead_to_processes_that_do_not_ask_for_it_hardly_counts_as_received(rig: Rig) -> None:
    """A message is given up after five receptions; processes that start while its queue is paused ask for nothing."""
    await rig.backend.create_queue("q")
    await rig.backend.send_messages("q", [b"1"])
    async with asyncio.timeout(60):
        for _ in range(8):
            process = rig.another()
            await process.open()
            async with aclosing(process.subscribe_many(["q"])) as news:
                await anext(news)
                feed = process._feeds["q"]
                while not feed.waiting:
                    await asyncio.sleep(0.02)
            await process.close()

        while not (received := await rig.backend.receive_messages("q", 1, 30)):
            await asyncio.sleep(0.02)
    (message,) = received
    assert message.payload == b"1"
    assert message.read_count <= 4
    assert await rig.backend.ack_message("q", message.message_id)
    assert (await rig.backend.queue_stats("q")).depth == 0


async def test_who_is_told_to_stop_just_as_an_answer_comes_is_stopped() -> None:
    """Before Python 3.12 `asyncio.wait_for` lets the answer count and forgets that somebody was told to stop."""
    link, asked, answer = Link(RabbitmqSettings()), asyncio.Event(), asyncio.get_running_loop().create_future()

    async def call() -> None:
        async with link.answered():
            asked.set()
            with suppress(asyncio.CancelledError):
                await answer
        await asyncio.Event().wait()

    calling = asyncio.create_task(call())
    await asked.wait()
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(calling, 30)


async def test_looks_at_the_age_of_a_message_hardly_count_as_receptions(rig: Rig) -> None:
    """A message is given up after five receptions; a queue that is paused is looked at again and again."""
    await rig.backend.create_queue("q")
    await rig.backend.send_message("q", b"1")
    async with asyncio.timeout(60):
        for look in range(8):
            rig.clock.seconds += 2 * STATS_SECONDS
            while (stats := await rig.backend.queue_stats("q")).depth != 1 or stats.oldest_seconds is None:
                rig.clock.seconds += 2 * STATS_SECONDS
                await asyncio.sleep(0.02)  # it is on its way back
            assert stats.oldest_seconds >= 2 * STATS_SECONDS * (look + 1)

        while not (received := await rig.backend.receive_messages("q", 1, 30)):
            await asyncio.sleep(0.02)
    assert [(message.payload, message.read_count) for message in received] == [(b"1", 2)]
