"""What the service makes of notifications, whichever of the two forms a backend gives."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from typing import Any

import pytest

from tasker.errors import MessagingError
from tasker.messaging import MessagingService
from tasker.messaging.port import MessageAvailable, QueuedMessage
from tasker.messaging.service import BROUGHT_LIMIT
from tasker_memory import create
from tasker_memory.backend import MemoryBackend, SystemClock


class Bringing(MemoryBackend):
    """Brings the messages along with the notifications."""

    async def subscribe_many(self, queues: Sequence[str]) -> AsyncGenerator[Any, None]:
        async with aclosing(super().subscribe_many(queues)) as notifications:
            async for notification in notifications:
                yield MessageAvailable(notification.queue)
                while messages := await self.receive_messages(notification.queue, 1, 30):
                    yield messages[0]


async def told(news: AsyncGenerator[None, None]) -> None:
    await asyncio.wait_for(anext(news), 60)


async def test_a_subscriber_is_told_at_once_and_at_every_message() -> None:
    service = MessagingService(create({}))
    async with aclosing(service.step_news("pay")) as news:
        await told(news)
        await service.send_message("worker_pay_queue", b"1")
        await told(news)
    assert [message.payload for message in await service.receive_step_messages("pay", 10, 30)] == [b"1"]


async def test_messages_that_notifications_bring_are_what_is_received_next_and_can_be_settled() -> None:
    service = MessagingService(Bringing(SystemClock()))
    async with aclosing(service.step_news("pay")) as news:
        await told(news)
        await service.send_message("worker_pay_queue", b"1")
        await told(news)
        await service.send_message("worker_pay_queue", b"2")
        first = await service.receive_step_messages("pay", 1, 30)
        rest = await service.receive_step_messages("pay", 10, 30)
    assert [message.payload for message in first + rest] == [b"1", b"2"]
    assert [await service.ack_message(message.queue, message.message_id) for message in first + rest] == [True, True]


async def test_brought_messages_are_bounded() -> None:
    service = MessagingService(Bringing(SystemClock()))
    await service.ensure_namespace("pay")
    await service.backend.send_messages("worker_pay_queue", [b"{}"] * (BROUGHT_LIMIT + 10))
    async with aclosing(service.step_news("pay")) as news:
        for _ in range(1 + BROUGHT_LIMIT):
            await told(news)
        waiting = asyncio.ensure_future(anext(news))
        await asyncio.sleep(0)
        assert not waiting.done()
        received: list[QueuedMessage] = await service.receive_step_messages("pay", 1, 30)
        await asyncio.wait_for(waiting, 60)
    assert len(received) == 1


async def test_a_queue_that_a_provider_has_lost_is_made_again() -> None:
    service = MessagingService(create({}))
    hint = {
        "namespace": "pay",
        "step": "5b3f1d1e-7f5e-4d38-9f0d-000000000001",
        "task": "5b3f1d1e-7f5e-4d38-9f0d-000000000000",
    }
    await service.send_hints([hint])
    await service.backend.delete_queue("worker_pay_queue")
    with pytest.raises(MessagingError, match="does not exist"):
        await service.send_hints([hint])
    assert await service.send_hints([hint]) == {"pay": 1}
