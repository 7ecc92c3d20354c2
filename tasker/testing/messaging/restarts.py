"""Conformance tests of restarts, rival processes and pushed messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from contextlib import aclosing, suppress

from tasker.errors import MessagingError
from tasker.messaging.port import Backend, MessageAvailable, QueuedMessage
from tasker.testing.messaging.suite import (
    HIDDEN,
    OTHER,
    QUEUE,
    RECOVERY,
    Suite,
    needs,
    numbered,
    one_received,
    receive,
    received_in_time,
    recovered,
    soon,
    stats_at_depth,
)


class Restarts(Suite):
    """A backend outlives its server."""

    async def test_after_a_restart_the_backend_works_by_itself(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        await self.restart(backend)
        await recovered(lambda: backend.create_queue(QUEUE))
        await recovered(lambda: backend.send_message(QUEUE, b'{"n": 1}'))
        messages = await received_in_time(backend, 1)
        assert [message.payload for message in messages] == [b'{"n": 1}']
        assert await backend.ack_message(QUEUE, messages[0].message_id) is True
        assert await backend.health_check() is True

    async def test_after_a_restart_what_was_sent_is_there_in_order(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        ids = await backend.send_messages(QUEUE, [numbered(n) for n in range(50)])
        await self.restart(backend)
        received = await received_in_time(backend, len(ids))
        assert [message.message_id for message in received] == ids

    async def test_after_a_restart_a_receipt_is_honoured_or_refused_and_then_the_message_comes_back(
        self, backend: Backend
    ) -> None:
        message = await one_received(backend)
        await self.restart(backend)
        honoured = await recovered(lambda: backend.ack_message(QUEUE, message.message_id))
        await self.advance(backend, HIDDEN + 5)
        again = await received_in_time(backend, 0 if honoured else 1)
        assert [one.message_id for one in again] == ([] if honoured else [message.message_id])

    async def test_after_a_restart_a_subscriber_is_told_or_may_subscribe_again(self, backend: Backend) -> None:
        needs(backend.capabilities.push, "push")
        await backend.create_queue(QUEUE)
        async with aclosing(backend.subscribe_many([QUEUE])) as notifications:
            await soon(anext(notifications))
            await self.restart(backend)
            await recovered(lambda: backend.create_queue(QUEUE))
            await recovered(lambda: backend.send_message(QUEUE, b'{"n": 1}'))
            with suppress(MessagingError):
                assert (await soon(anext(notifications))).queue == QUEUE
                return
        async with aclosing(backend.subscribe_many([QUEUE])) as notifications:
            assert await soon(anext(notifications)) == MessageAvailable(QUEUE)


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


class Rivals(Suite):
    """Two processes share a queue; one continues after the other has died."""

    async def test_two_processes_share_the_messages_and_get_none_twice(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        rival = await self.another(backend)
        ids = await backend.send_messages(QUEUE, [numbered(n) for n in range(200)])
        messages: list[QueuedMessage] = []
        rival_messages: list[QueuedMessage] = []
        try:
            await asyncio.gather(
                _settle_until(lambda: len(messages) + len(rival_messages) >= len(ids), backend, messages),
                _settle_until(lambda: len(messages) + len(rival_messages) >= len(ids), rival, rival_messages),
            )
        finally:
            await rival.close()
        assert sorted(message.message_id for message in messages + rival_messages) == sorted(ids)
        assert messages
        assert rival_messages

    async def test_what_a_dead_process_held_comes_to_another_and_what_it_settled_does_not(
        self, backend: Backend
    ) -> None:
        await backend.create_queue(QUEUE)
        ids = await backend.send_messages(QUEUE, [numbered(n) for n in range(10)])
        rival = await self.another(backend)
        held = await rival.receive_messages(QUEUE, 6, HIDDEN)
        settled = [message.message_id for message in held[:2]]
        assert await rival.ack_messages(QUEUE, settled) == [True, True]
        await rival.close()
        await self.advance(backend, HIDDEN + 5)
        received: list[QueuedMessage] = []
        await _settle_until(lambda: len(received) >= len(ids) - len(settled), backend, received)
        reads = {message.message_id: message.read_count for message in received}
        assert len(received) == len(reads)
        again = {message.message_id: 2 for message in held[2:]}
        assert reads == {message_id: again.get(message_id, 1) for message_id in ids if message_id not in settled}
        assert (await stats_at_depth(backend, 0)).depth == 0

    async def test_a_process_that_makes_sure_of_a_queue_leaves_alone_what_others_hold_and_gave_back(
        self, backend: Backend
    ) -> None:
        await backend.create_queue(QUEUE)
        done, held, back, new = await backend.send_messages(QUEUE, [numbered(n) for n in range(4)])
        for message_id in (done, held, back):
            assert [message.message_id for message in await backend.receive_messages(QUEUE, 1, HIDDEN)] == [message_id]
        assert await backend.ack_message(QUEUE, done) is True
        assert await backend.nack_message(QUEUE, back) is True

        rival = await self.another(backend)
        await rival.create_queue(QUEUE)
        await rival.close()

        assert (await stats_at_depth(backend, 3)).depth == 3
        assert await backend.nack_message(QUEUE, held) is True
        received: list[QueuedMessage] = []
        await _settle_until(lambda: len(received) >= 3, backend, received)
        reads = {message.message_id: message.read_count for message in received}
        assert reads == {held: 2, back: 2, new: 1}
        assert (await stats_at_depth(backend, 0)).depth == 0


async def _settle_until(enough: Callable[[], bool], backend: Backend, received: list[QueuedMessage]) -> None:
    """Receive and acknowledge a few messages at a time, and add them to `received`."""
    async with asyncio.timeout(RECOVERY):
        while not enough():
            for message in await backend.receive_messages(QUEUE, 5, HIDDEN):
                assert await backend.ack_message(QUEUE, message.message_id) is True
                received.append(message)
            await asyncio.sleep(0)
