"""What a broker is told about a message, in which order, and what becomes of a message that arrives twice."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aio_pika
import pytest
import pytest_asyncio

from tasker.errors import MessagingError
from tasker.messaging.port import MessageAvailable
from tasker_memory.backend import MemoryBackend
from tasker_rabbitmq.backend import RabbitmqBackend
from tasker_rabbitmq.received import forced_delay
from tasker_redis import link as redis_link
from tests.contract.rabbitmq_rig import Rig
from tests.support.servers import brokers
from tests.unit.execution.bench import PATIENCE, FakeClock

QUEUE = "worker_settling_queue"


@pytest_asyncio.fixture
async def rabbit() -> AsyncIterator[Rig]:
    rig = Rig(brokers.shared_url(brokers.RABBITMQ))
    await rig.backend.open()
    await rig.backend.create_queue(QUEUE)
    yield rig
    await rig.clean()


async def depth(backend: RabbitmqBackend) -> int:
    return (await backend.queue_stats(QUEUE)).depth


async def test_a_message_whose_delayed_copy_cannot_be_kept_comes_again(
    rabbit: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    await rabbit.backend.send_message(QUEUE, b"precious")
    (message,) = await rabbit.backend.receive_messages(QUEUE, 1, 30)

    async def refused(*_: Any, **__: Any) -> None:
        raise MessagingError("the broker takes nothing")

    with monkeypatch.context() as patched:
        patched.setattr(rabbit.backend, "_publish", refused)
        with pytest.raises(MessagingError):
            await rabbit.backend.nack_message(QUEUE, message.message_id, 60)

    async with asyncio.timeout(PATIENCE):
        while not (again := await rabbit.backend.receive_messages(QUEUE, 1, 30)):
            await asyncio.sleep(0.01)
    assert again[0].payload == b"precious"


async def test_of_a_message_that_arrives_twice_nothing_is_left_once_it_is_done(rabbit: Rig) -> None:
    for _ in range(2):
        await rabbit.backend._publish(QUEUE, QUEUE, [(77, b"twice")], rabbit.clock.now(), 0)
    async with asyncio.timeout(PATIENCE):
        received: list[Any] = []
        while len(received) < 2:
            received += await rabbit.backend.receive_messages(QUEUE, 2, 30)
    await rabbit.backend.ack_message(QUEUE, 77)
    await rabbit.backend.close()

    fresh = rabbit.another()
    await fresh.open()
    assert await depth(fresh) == 0
    await fresh.close()


async def test_messages_outlive_the_broker(rabbit: Rig) -> None:
    await rabbit.backend.send_message(QUEUE, b"kept")
    async with await aio_pika.connect(rabbit.url) as connection:
        channel = await connection.channel()
        queue = await channel.get_queue(rabbit.prefix + QUEUE)
        found = await queue.get(timeout=PATIENCE)
        assert found.delivery_mode is aio_pika.DeliveryMode.PERSISTENT
        await found.ack()


def test_a_message_that_comes_back_for_ever_waits_half_a_minute_at_most() -> None:
    delays = [forced_delay(reads) for reads in range(1, 2000)]

    assert delays == sorted(delays)
    assert delays[-1] == 25.6


async def test_a_message_that_is_given_back_is_announced_to_those_who_wait() -> None:
    backend = MemoryBackend(FakeClock())
    await backend.create_queue(QUEUE)
    await backend.send_message(QUEUE, b"work")
    (message,) = await backend.receive_messages(QUEUE, 1, 30)
    news = backend.subscribe_many([QUEUE])
    assert await anext(news) == MessageAvailable(QUEUE), "it begins with every queue"
    hearing = asyncio.ensure_future(anext(news))
    await asyncio.sleep(0)
    await backend.nack_message(QUEUE, message.message_id)

    assert await asyncio.wait_for(hearing, 60) == MessageAvailable(QUEUE)
    await news.aclose()


async def test_a_cancellation_that_the_redis_client_swallows_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redis_link, "SWALLOWED_SECONDS", 0.01)
    swallowed, over = 0, asyncio.Event()

    async def stubborn() -> None:
        nonlocal swallowed
        while swallowed < 3 and not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                swallowed += 1

    call = asyncio.create_task(redis_link.interruptible(stubborn()))
    await asyncio.sleep(0)
    call.cancel()
    done, _ = await asyncio.wait([call], timeout=10)
    over.set()
    await asyncio.wait([call])

    assert done, "the worker hangs at its stop"
    assert swallowed == 3
