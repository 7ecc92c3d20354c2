"""Visibility and receipts."""

from __future__ import annotations

import json

from tasker.messaging.port import Backend
from tasker.testing.messaging.suite import HIDDEN, QUEUE, Suite, needs, numbered, one_received, receive, stats_at_depth


class Receipts(Suite):
    """The receiver of a message acknowledges it, releases it, or loses it after a time."""

    async def test_a_received_message_is_hidden_until_its_timeout_then_counted_again(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        message_id = await backend.send_message(QUEUE, b"{}")
        await backend.receive_messages(QUEUE, 1, HIDDEN)
        await self.advance(backend, HIDDEN - 5)
        assert await backend.receive_messages(QUEUE, 1, HIDDEN) == []
        await self.advance(backend, 10)
        (again,) = await backend.receive_messages(QUEUE, 1, HIDDEN)
        assert (again.message_id, again.read_count) == (message_id, 2)

    async def test_an_acknowledged_message_is_gone(self, backend: Backend) -> None:
        message = await one_received(backend)
        assert await backend.ack_message(QUEUE, message.message_id) is True
        await self.advance(backend, HIDDEN + 5)
        assert await receive(backend) == []
        assert (await stats_at_depth(backend, 0)).depth == 0

    async def test_acknowledging_twice_says_false(self, backend: Backend) -> None:
        message = await one_received(backend)
        await backend.ack_message(QUEUE, message.message_id)
        assert await backend.ack_message(QUEUE, message.message_id) is False

    async def test_many_are_acknowledged_at_once_and_each_is_answered(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        await backend.send_messages(QUEUE, [numbered(n) for n in range(30)])
        first, second, *others = await backend.receive_messages(QUEUE, 20, HIDDEN)
        await backend.ack_message(QUEUE, first.message_id)
        await backend.nack_message(QUEUE, second.message_id)
        ids = [message.message_id for message in (first, *others, second)]
        assert await backend.ack_messages(QUEUE, ids) == [False, *[True] * len(others), False]
        assert await backend.ack_messages(QUEUE, []) == []
        assert len(await receive(backend)) == 11

    async def test_a_message_given_back_is_visible_at_once(self, backend: Backend) -> None:
        message = await one_received(backend)
        assert await backend.nack_message(QUEUE, message.message_id) is True
        (again,) = await backend.receive_messages(QUEUE, 1, HIDDEN)
        assert (again.message_id, again.read_count) == (message.message_id, 2)

    async def test_a_message_given_back_with_a_delay_waits_for_it(self, backend: Backend) -> None:
        message = await one_received(backend)
        assert await backend.nack_message(QUEUE, message.message_id, 60.0) is True
        await self.advance(backend, 50)
        assert await receive(backend) == []
        await self.advance(backend, 15)
        assert len(await receive(backend)) == 1

    async def test_a_message_given_back_is_no_longer_ours(self, backend: Backend) -> None:
        message = await one_received(backend)
        await backend.nack_message(QUEUE, message.message_id, 60.0)
        assert await backend.ack_message(QUEUE, message.message_id) is False
        assert await backend.nack_message(QUEUE, message.message_id) is False

    async def test_a_message_that_keeps_coming_back_is_counted_each_time(self, backend: Backend) -> None:
        await one_received(backend)
        for count in (2, 3, 4, 5):
            await self.advance(backend, HIDDEN + 5)
            (again,) = await backend.receive_messages(QUEUE, 10, HIDDEN)
            assert again.read_count == count
        assert await backend.ack_message(QUEUE, again.message_id) is True

    async def test_a_poison_message_that_is_put_off_does_not_hold_up_those_behind_it(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        await backend.send_messages(QUEUE, [b"poison", b'{"n": 1}', b'{"n": 2}'])
        (poison,) = await backend.receive_messages(QUEUE, 1, HIDDEN)
        assert await backend.nack_message(QUEUE, poison.message_id, 60.0) is True
        assert await receive(backend) == [{"n": 1}, {"n": 2}]
        await self.advance(backend, 65)
        payloads = [message.payload for message in await backend.receive_messages(QUEUE, 10, HIDDEN)]
        assert b"poison" in payloads

    async def test_an_unknown_or_unreceived_id_says_false(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        unreceived = await backend.send_message(QUEUE, b"{}")
        for message_id in (unreceived, unreceived + 1_000_000):
            assert await backend.ack_message(QUEUE, message_id) is False
            assert await backend.nack_message(QUEUE, message_id) is False
            assert await backend.extend_visibility(QUEUE, message_id, 60.0) is False
        assert len(await receive(backend)) == 1

    async def test_an_extended_message_stays_hidden_for_longer(self, backend: Backend) -> None:
        needs(backend.capabilities.ack_extend, "ack_extend")
        message = await one_received(backend)
        await self.advance(backend, HIDDEN - 5)
        assert await backend.extend_visibility(QUEUE, message.message_id, 60.0) is True
        await self.advance(backend, 50)
        assert await receive(backend) == []
        assert await backend.ack_message(QUEUE, message.message_id) is True

    async def test_one_message_is_taken_by_its_id_and_only_once(self, backend: Backend) -> None:
        needs(backend.capabilities.fetch_by_id, "fetch_by_id")
        await backend.create_queue(QUEUE)
        ids = await backend.send_messages(QUEUE, [numbered(n) for n in range(3)])
        message = await backend.receive_message(QUEUE, ids[1], HIDDEN)
        assert message is not None
        assert json.loads(message.payload) == {"n": 1}
        assert await backend.receive_message(QUEUE, ids[1], HIDDEN) is None
        assert await backend.receive_message(QUEUE, ids[2] + 1_000_000, HIDDEN) is None
        assert await receive(backend) == [{"n": 0}, {"n": 2}]
        assert await backend.ack_message(QUEUE, ids[1]) is True

    async def test_a_delayed_message_waits_until_it_is_due(self, backend: Backend) -> None:
        needs(backend.capabilities.native_delay, "native_delay")
        await backend.create_queue(QUEUE)
        await backend.send_message_with_delay(QUEUE, b'{"n": 1}', 60.0)
        await self.advance(backend, 50)
        assert await receive(backend) == []
        await self.advance(backend, 15)
        assert await receive(backend) == [{"n": 1}]

    async def test_stats_count_waiting_and_hidden_messages_and_tell_the_oldest_age(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        empty = await backend.queue_stats(QUEUE)
        assert (empty.queue, empty.depth, empty.oldest_seconds) == (QUEUE, 0, None)
        await backend.send_messages(QUEUE, [b"{}", b"{}", b"{}"])
        await backend.receive_messages(QUEUE, 1, HIDDEN)
        await self.advance(backend, 120)
        stats = await stats_at_depth(backend, 3)
        assert stats.depth == 3
        assert stats.oldest_seconds is not None
        assert 119 <= stats.oldest_seconds < 600

    async def test_stats_tell_what_is_in_flight_or_say_that_they_cannot(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        await backend.send_messages(QUEUE, [b"{}", b"{}", b"{}"])
        first, _ = await backend.receive_messages(QUEUE, 2, HIDDEN)
        assert (await backend.queue_stats(QUEUE)).in_flight in (2, None)
        await backend.ack_message(QUEUE, first.message_id)
        stats = await stats_at_depth(backend, 2)
        assert stats.depth == 2
        assert stats.in_flight in (1, None)
        assert stats.consumers is None or stats.consumers >= 0
