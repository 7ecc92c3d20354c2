"""Push."""

from __future__ import annotations

import json
from contextlib import aclosing

from tasker.contracts.messaging import Backend, MessageAvailable, QueuedMessage
from tasker.testing.messaging.suite import HIDDEN, OTHER, QUEUE, Suite, needs, numbered, receive, soon


class Push(Suite):
    """Subscribers are notified of messages."""

    async def test_a_subscriber_is_told_of_messages_that_come_later(self, backend: Backend) -> None:
        needs(backend.capabilities.push, "push")
        await backend.create_queue(QUEUE)
        await backend.create_queue(OTHER)
        async with aclosing(backend.subscribe_many([QUEUE])) as notifications:
            assert await soon(anext(notifications)) == MessageAvailable(QUEUE)
            await backend.send_message(OTHER, b'{"n": 0}')
            await backend.send_message(QUEUE, b'{"n": 1}')
            notification = await soon(anext(notifications))
            assert notification.queue == QUEUE
            if isinstance(notification, MessageAvailable):
                assert await receive(backend) == [{"n": 1}]
            else:
                assert json.loads(notification.payload) == {"n": 1}

    async def test_a_subscription_first_names_each_of_its_queues(self, backend: Backend) -> None:
        needs(backend.capabilities.push, "push")
        await backend.create_queue(QUEUE)
        await backend.create_queue(OTHER)
        async with aclosing(backend.subscribe_many([QUEUE, OTHER])) as notifications:
            first = [await soon(anext(notifications)) for _ in range(2)]
        assert {notification.queue for notification in first} == {QUEUE, OTHER}

    async def test_a_closed_subscription_leaves_the_backend_usable(self, backend: Backend) -> None:
        needs(backend.capabilities.push, "push")
        await backend.create_queue(QUEUE)
        for _ in range(3):
            async with aclosing(backend.subscribe_many([QUEUE])) as notifications:
                await soon(anext(notifications))
        await backend.send_message(QUEUE, b'{"n": 1}')
        assert await receive(backend) == [{"n": 1}]

    async def test_what_a_subscriber_and_a_poller_get_is_everything_once(self, backend: Backend) -> None:
        needs(backend.capabilities.push, "push")
        await backend.create_queue(QUEUE)
        payloads = [numbered(n) for n in range(300)]
        await backend.send_messages(QUEUE, payloads[:100])
        seen: list[bytes] = []
        async with aclosing(backend.subscribe_many([QUEUE])) as notifications:
            await backend.send_messages(QUEUE, payloads[100:])
            while len(seen) < len(payloads):
                notification = await soon(anext(notifications))
                seen += [notification.payload] if isinstance(notification, QueuedMessage) else []
                while batch := await backend.receive_messages(QUEUE, 7, HIDDEN):
                    seen += [message.payload for message in batch]
                    for message in batch:
                        assert await backend.ack_message(QUEUE, message.message_id) is True
        assert sorted(json.loads(payload)["n"] for payload in seen) == list(range(300))
