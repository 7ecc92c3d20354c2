"""The conformance suite of messaging backends.

Subclass it in a test file, give it an open backend and a way to move its time, and run pytest:

    class TestMine(MessagingContract):
        @pytest_asyncio.fixture
        async def backend(self):
            backend = create({...})
            await backend.open()
            yield backend
            await backend.close()

        async def advance(self, backend, seconds):
            ...

        async def restart(self, backend):  # where there is a server that can be killed
            ...
"""

# ruff: noqa: D102 - the name of a test says what it proves

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import aclosing, suppress
from typing import TypeVar

import pytest

from tasker.contracts.messaging import (
    QUEUE_NAME_MAX,
    Available,
    Backend,
    Capabilities,
    QueuedMessage,
    TransactionalBackend,
)
from tasker.errors import InvalidQueueName, MessagingError

QUEUE = "worker_contract_queue"
OTHER = "worker_contract_other_queue"
HIDDEN = 30.0
"""Visibility timeout of the tests, in seconds; time passes by `advance` alone."""
PATIENCE = 10.0
"""Seconds after which a notification counts as lost; a test that passes does not wait for them."""
RECOVERY = 60.0
"""Seconds that a backend may need to work again after its server was killed and started."""

TOO_LONG = "a" * (QUEUE_NAME_MAX + 1)
BAD_NAMES = ["", " ", "a b", "a;b", 'a"b', "a'b", "a$b", "a--b", "a.b", "a/b", "a\n", "naïve", TOO_LONG]

T = TypeVar("T")


@pytest.mark.asyncio
class MessagingContract:
    """What every backend does alike. A capability that is claimed is tested, one that is not is skipped.

    The subclass brings a fixture `backend`, an open backend without queues, and `advance`.
    """

    async def advance(self, backend: Backend, seconds: float) -> None:
        """Let `seconds` pass for the messages of the backend, without waiting. The subclass overrides it."""
        raise NotImplementedError("say how time passes: async def advance(self, backend, seconds)")

    async def restart(self, backend: Backend) -> None:
        """Kill the server as a crash would, start it again with its data, and return when it listens.

        Tests whose names begin with `test_after_a_restart` call it; they are skipped unless the subclass overrides it.
        """
        pytest.skip("the test class does not say how to restart the server")

    # What it is

    async def test_it_keeps_the_shape_of_a_backend(self, backend: Backend) -> None:
        assert isinstance(backend, Backend)
        assert isinstance(backend.capabilities, Capabilities)
        assert backend.provider_name()

    async def test_an_open_backend_is_healthy(self, backend: Backend) -> None:
        assert await backend.health_check() is True

    async def test_it_may_be_opened_twice_and_closed_twice(self, backend: Backend) -> None:
        await backend.open()
        await backend.close()
        await backend.close()

    async def test_a_transactional_backend_brings_its_sql(self, backend: Backend) -> None:
        _needs(backend.capabilities.transactional, "transactional")
        assert isinstance(backend, TransactionalBackend)
        names = backend.transactional_sql()
        scripts = backend.install_sql()
        for name in (names.call, names.claim, names.missing):
            assert any(f"function {name}(" in sql for _, sql in scripts), name

    # Queues

    async def test_a_created_queue_exists_and_is_listed_in_order(self, backend: Backend) -> None:
        assert not await backend.queue_exists(QUEUE)
        await backend.create_queue(QUEUE)
        await backend.create_queue(OTHER)
        assert await backend.queue_exists(QUEUE)
        assert [name for name in await backend.list_queues() if name in (QUEUE, OTHER)] == sorted([QUEUE, OTHER])

    async def test_creating_a_queue_twice_keeps_its_messages(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        await backend.send_message(QUEUE, b'{"n": 1}')
        await backend.create_queue(QUEUE)
        assert await _receive(backend) == [{"n": 1}]

    async def test_a_queue_may_be_deleted_twice_and_is_empty_when_made_again(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        await backend.send_message(QUEUE, b'{"n": 1}')
        await backend.delete_queue(QUEUE)
        await backend.delete_queue(QUEUE)
        assert not await backend.queue_exists(QUEUE)
        assert QUEUE not in await backend.list_queues()
        await backend.create_queue(QUEUE)
        assert await _receive(backend) == []

    async def test_queues_do_not_share_messages(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        await backend.create_queue(OTHER)
        await backend.send_message(QUEUE, b'{"n": 1}')
        assert await backend.receive_messages(OTHER, 10, HIDDEN) == []

    async def test_names_of_full_length_stay_apart(self, backend: Backend) -> None:
        first, second = ("q" * (QUEUE_NAME_MAX - 1) + end for end in "ab")
        for name in (first, second):
            await backend.create_queue(name)
            await backend.send_message(name, json.dumps({"to": name}).encode())
        assert await _receive(backend, first) == [{"to": first}]
        assert await _receive(backend, second) == [{"to": second}]

    @pytest.mark.parametrize("name", BAD_NAMES)
    async def test_a_bad_name_is_refused_everywhere(self, backend: Backend, name: str) -> None:
        for call in (
            backend.create_queue(name),
            backend.delete_queue(name),
            backend.queue_exists(name),
            backend.queue_stats(name),
            backend.send_message(name, b"{}"),
            backend.send_messages(name, [b"{}"]),
            backend.send_message_with_delay(name, b"{}", 60.0),
            backend.receive_messages(name, 1, HIDDEN),
            backend.ack_message(name, 1),
            backend.ack_messages(name, [1]),
            backend.nack_message(name, 1),
            backend.extend_visibility(name, 1, 60.0),
            anext(backend.subscribe_many([name])),
        ):
            with pytest.raises(InvalidQueueName):
                await call

    async def test_a_missing_queue_is_an_error_that_names_it(self, backend: Backend) -> None:
        for call in (
            backend.send_message(OTHER, b"{}"),
            backend.send_messages(OTHER, [b"{}"]),
            backend.receive_messages(OTHER, 1, HIDDEN),
            backend.queue_stats(OTHER),
        ):
            with pytest.raises(MessagingError, match=OTHER):
                await call

    # Sending and receiving

    async def test_messages_arrive_in_the_order_they_were_sent(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        ids = [await backend.send_message(QUEUE, _numbered(n)) for n in range(5)]
        received = await backend.receive_messages(QUEUE, 10, HIDDEN)
        assert [message.message_id for message in received] == ids
        assert [json.loads(message.payload)["n"] for message in received] == list(range(5))
        assert {(message.queue, message.read_count) for message in received} == {(QUEUE, 1)}

    async def test_a_batch_arrives_in_order_with_its_ids(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        ids = await backend.send_messages(QUEUE, [_numbered(n) for n in range(20)])
        assert len(set(ids)) == 20
        received = await backend.receive_messages(QUEUE, 20, HIDDEN)
        assert [message.message_id for message in received] == ids
        assert [json.loads(message.payload)["n"] for message in received] == list(range(20))

    async def test_an_empty_batch_sends_nothing(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        assert await backend.send_messages(QUEUE, []) == []
        assert await _receive(backend) == []

    async def test_receiving_stops_at_the_limit(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        await backend.send_messages(QUEUE, [_numbered(n) for n in range(5)])
        assert [len(await backend.receive_messages(QUEUE, 2, HIDDEN)) for _ in range(4)] == [2, 2, 1, 0]

    @pytest.mark.parametrize(
        "payload",
        [
            b"not json",
            b"",
            b"\x00\xff\xfe",
            b"42",
            b'"text"',
            b"[1, 2]",
            b"NaN",
            b'{"n": Infinity}',
            b'{"n": 1e999999}',
            b'{"nul": "\\u0000"}',
            b'{"half": "\\ud800"}',
            b'{"raw": "AAAA"}',
            b'{"raw": 1}',
            b"[" * 20000,
        ],
        ids=lambda payload: repr(payload[:20]),
    )
    async def test_a_payload_that_is_no_plain_json_object_survives_unchanged(
        self, backend: Backend, payload: bytes
    ) -> None:
        await backend.create_queue(QUEUE)
        await backend.send_message(QUEUE, payload)
        (message,) = await backend.receive_messages(QUEUE, 1, HIDDEN)
        assert message.payload == payload

    async def test_json_survives_as_json(self, backend: Backend) -> None:
        value = {"text": "naïve ☃ \U0001f600", "list": [1, 2.5, None, True], "deep": {"a": {"b": {}}}, "%s": ":x"}
        await backend.create_queue(QUEUE)
        await backend.send_message(QUEUE, json.dumps(value).encode())
        assert await _receive(backend) == [value]

    async def test_competing_consumers_get_disjoint_messages(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        ids = await backend.send_messages(QUEUE, [_numbered(n) for n in range(100)])
        batches = await asyncio.gather(*(backend.receive_messages(QUEUE, 15, HIDDEN) for _ in range(8)))
        received = [message.message_id for batch in batches for message in batch]
        assert sorted(received) == sorted(ids)

    async def test_ten_thousand_messages_arrive_once_each(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        for start in range(0, 10_000, 1_000):
            await backend.send_messages(QUEUE, [_numbered(n) for n in range(start, start + 1_000)])
        seen: list[int] = []
        while batch := await backend.receive_messages(QUEUE, 700, 3600.0):
            seen += [json.loads(message.payload)["n"] for message in batch]
        assert sorted(seen) == list(range(10_000))

    # Visibility and receipts

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
        message = await _one(backend)
        assert await backend.ack_message(QUEUE, message.message_id) is True
        await self.advance(backend, HIDDEN + 5)
        assert await _receive(backend) == []
        assert (await backend.queue_stats(QUEUE)).depth == 0

    async def test_acknowledging_twice_says_false(self, backend: Backend) -> None:
        message = await _one(backend)
        await backend.ack_message(QUEUE, message.message_id)
        assert await backend.ack_message(QUEUE, message.message_id) is False

    async def test_many_are_acknowledged_at_once_and_each_is_answered(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        await backend.send_messages(QUEUE, [_numbered(n) for n in range(30)])
        first, second, *others = await backend.receive_messages(QUEUE, 20, HIDDEN)
        await backend.ack_message(QUEUE, first.message_id)
        await backend.nack_message(QUEUE, second.message_id)
        ids = [message.message_id for message in (first, *others, second)]
        assert await backend.ack_messages(QUEUE, ids) == [False, *[True] * len(others), False]
        assert await backend.ack_messages(QUEUE, []) == []
        assert len(await _receive(backend)) == 11

    async def test_a_message_given_back_is_visible_at_once(self, backend: Backend) -> None:
        message = await _one(backend)
        assert await backend.nack_message(QUEUE, message.message_id) is True
        (again,) = await backend.receive_messages(QUEUE, 1, HIDDEN)
        assert (again.message_id, again.read_count) == (message.message_id, 2)

    async def test_a_message_given_back_with_a_delay_waits_for_it(self, backend: Backend) -> None:
        message = await _one(backend)
        assert await backend.nack_message(QUEUE, message.message_id, 60.0) is True
        await self.advance(backend, 50)
        assert await _receive(backend) == []
        await self.advance(backend, 15)
        assert len(await _receive(backend)) == 1

    async def test_a_message_given_back_is_no_longer_ours(self, backend: Backend) -> None:
        message = await _one(backend)
        await backend.nack_message(QUEUE, message.message_id, 60.0)
        assert await backend.ack_message(QUEUE, message.message_id) is False
        assert await backend.nack_message(QUEUE, message.message_id) is False

    async def test_a_message_that_keeps_coming_back_is_counted_each_time(self, backend: Backend) -> None:
        await _one(backend)
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
        assert await _receive(backend) == [{"n": 1}, {"n": 2}]
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
        assert len(await _receive(backend)) == 1

    async def test_an_extended_message_stays_hidden_for_longer(self, backend: Backend) -> None:
        _needs(backend.capabilities.ack_extend, "ack_extend")
        message = await _one(backend)
        await self.advance(backend, HIDDEN - 5)
        assert await backend.extend_visibility(QUEUE, message.message_id, 60.0) is True
        await self.advance(backend, 50)
        assert await _receive(backend) == []
        assert await backend.ack_message(QUEUE, message.message_id) is True

    async def test_one_message_is_taken_by_its_id_and_only_once(self, backend: Backend) -> None:
        _needs(backend.capabilities.fetch_by_id, "fetch_by_id")
        await backend.create_queue(QUEUE)
        ids = await backend.send_messages(QUEUE, [_numbered(n) for n in range(3)])
        message = await backend.receive_message(QUEUE, ids[1], HIDDEN)
        assert message is not None
        assert json.loads(message.payload) == {"n": 1}
        assert await backend.receive_message(QUEUE, ids[1], HIDDEN) is None
        assert await backend.receive_message(QUEUE, ids[2] + 1_000_000, HIDDEN) is None
        assert await _receive(backend) == [{"n": 0}, {"n": 2}]
        assert await backend.ack_message(QUEUE, ids[1]) is True

    async def test_a_delayed_message_waits_until_it_is_due(self, backend: Backend) -> None:
        _needs(backend.capabilities.native_delay, "native_delay")
        await backend.create_queue(QUEUE)
        await backend.send_message_with_delay(QUEUE, b'{"n": 1}', 60.0)
        await self.advance(backend, 50)
        assert await _receive(backend) == []
        await self.advance(backend, 15)
        assert await _receive(backend) == [{"n": 1}]

    async def test_stats_count_waiting_and_hidden_messages_and_tell_the_oldest_age(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        empty = await backend.queue_stats(QUEUE)
        assert (empty.queue, empty.depth, empty.oldest_seconds) == (QUEUE, 0, None)
        await backend.send_messages(QUEUE, [b"{}", b"{}", b"{}"])
        await backend.receive_messages(QUEUE, 1, HIDDEN)
        await self.advance(backend, 120)
        stats = await backend.queue_stats(QUEUE)
        assert stats.depth == 3
        assert stats.oldest_seconds is not None
        assert 119 <= stats.oldest_seconds < 600

    async def test_stats_tell_what_is_in_flight_or_say_that_they_cannot(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        await backend.send_messages(QUEUE, [b"{}", b"{}", b"{}"])
        first, _ = await backend.receive_messages(QUEUE, 2, HIDDEN)
        assert (await backend.queue_stats(QUEUE)).in_flight in (2, None)
        await backend.ack_message(QUEUE, first.message_id)
        stats = await backend.queue_stats(QUEUE)
        assert stats.depth == 2
        assert stats.in_flight in (1, None)
        assert stats.consumers is None or stats.consumers >= 0

    # Push

    async def test_a_subscriber_is_told_of_messages_that_come_later(self, backend: Backend) -> None:
        _needs(backend.capabilities.push, "push")
        await backend.create_queue(QUEUE)
        await backend.create_queue(OTHER)
        async with aclosing(backend.subscribe_many([QUEUE])) as notifications:
            assert await _soon(anext(notifications)) == Available(QUEUE)
            await backend.send_message(OTHER, b'{"n": 0}')
            await backend.send_message(QUEUE, b'{"n": 1}')
            notification = await _soon(anext(notifications))
            assert notification.queue == QUEUE
            if isinstance(notification, Available):
                assert await _receive(backend) == [{"n": 1}]
            else:
                assert json.loads(notification.payload) == {"n": 1}

    async def test_a_subscription_first_names_each_of_its_queues(self, backend: Backend) -> None:
        _needs(backend.capabilities.push, "push")
        await backend.create_queue(QUEUE)
        await backend.create_queue(OTHER)
        async with aclosing(backend.subscribe_many([QUEUE, OTHER])) as notifications:
            first = [await _soon(anext(notifications)) for _ in range(2)]
        assert {notification.queue for notification in first} == {QUEUE, OTHER}

    async def test_a_closed_subscription_leaves_the_backend_usable(self, backend: Backend) -> None:
        _needs(backend.capabilities.push, "push")
        await backend.create_queue(QUEUE)
        for _ in range(3):
            async with aclosing(backend.subscribe_many([QUEUE])) as notifications:
                await _soon(anext(notifications))
        await backend.send_message(QUEUE, b'{"n": 1}')
        assert await _receive(backend) == [{"n": 1}]

    async def test_what_a_subscriber_and_a_poller_get_is_everything_once(self, backend: Backend) -> None:
        _needs(backend.capabilities.push, "push")
        await backend.create_queue(QUEUE)
        payloads = [_numbered(n) for n in range(300)]
        await backend.send_messages(QUEUE, payloads[:100])
        seen: list[bytes] = []
        async with aclosing(backend.subscribe_many([QUEUE])) as notifications:
            await backend.send_messages(QUEUE, payloads[100:])
            while len(seen) < len(payloads):
                notification = await _soon(anext(notifications))
                seen += [notification.payload] if isinstance(notification, QueuedMessage) else []
                while batch := await backend.receive_messages(QUEUE, 7, HIDDEN):
                    seen += [message.payload for message in batch]
                    for message in batch:
                        assert await backend.ack_message(QUEUE, message.message_id) is True
        assert sorted(json.loads(payload)["n"] for payload in seen) == list(range(300))

    # A server that was killed and started again

    async def test_after_a_restart_the_backend_works_by_itself(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        await self.restart(backend)
        await _recovered(lambda: backend.create_queue(QUEUE))
        await _recovered(lambda: backend.send_message(QUEUE, b'{"n": 1}'))
        messages = await _received_after_restart(backend, 1)
        assert [message.payload for message in messages] == [b'{"n": 1}']
        assert await backend.ack_message(QUEUE, messages[0].message_id) is True
        assert await backend.health_check() is True

    async def test_after_a_restart_what_was_sent_is_there_in_order(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        ids = await backend.send_messages(QUEUE, [_numbered(n) for n in range(50)])
        await self.restart(backend)
        received = await _received_after_restart(backend, len(ids))
        assert [message.message_id for message in received] == ids

    async def test_after_a_restart_a_receipt_is_honoured_or_refused_and_then_the_message_comes_back(
        self, backend: Backend
    ) -> None:
        message = await _one(backend)
        await self.restart(backend)
        honoured = await _recovered(lambda: backend.ack_message(QUEUE, message.message_id))
        await self.advance(backend, HIDDEN + 5)
        again = await _received_after_restart(backend, 0 if honoured else 1)
        assert [one.message_id for one in again] == ([] if honoured else [message.message_id])

    async def test_after_a_restart_a_subscriber_is_told_or_may_subscribe_again(self, backend: Backend) -> None:
        _needs(backend.capabilities.push, "push")
        await backend.create_queue(QUEUE)
        async with aclosing(backend.subscribe_many([QUEUE])) as notifications:
            await _soon(anext(notifications))
            await self.restart(backend)
            await _recovered(lambda: backend.create_queue(QUEUE))
            await _recovered(lambda: backend.send_message(QUEUE, b'{"n": 1}'))
            with suppress(MessagingError):
                assert (await _soon(anext(notifications))).queue == QUEUE
                return
        async with aclosing(backend.subscribe_many([QUEUE])) as notifications:
            assert await _soon(anext(notifications)) == Available(QUEUE)


def _needs(claimed: bool, capability: str) -> None:
    if not claimed:
        pytest.skip(f"the backend does not claim {capability}")


def _numbered(n: int) -> bytes:
    return json.dumps({"n": n}).encode()


async def _one(backend: Backend) -> QueuedMessage:
    await backend.create_queue(QUEUE)
    await backend.send_message(QUEUE, b"{}")
    (message,) = await backend.receive_messages(QUEUE, 1, HIDDEN)
    return message


async def _receive(backend: Backend, queue: str = QUEUE) -> list[object]:
    return [json.loads(message.payload) for message in await backend.receive_messages(queue, 100, HIDDEN)]


async def _recovered(call: Callable[[], Awaitable[T]]) -> T:
    """What the call answers once the backend is over the loss of its server."""
    async with asyncio.timeout(RECOVERY):
        while True:
            try:
                return await call()
            except MessagingError:
                await asyncio.sleep(0.05)


async def _received_after_restart(backend: Backend, count: int) -> list[QueuedMessage]:
    """What is received until there are `count` messages; the first answers of a server may be empty."""
    received: list[QueuedMessage] = []
    async with asyncio.timeout(RECOVERY):
        while True:
            received += await _recovered(lambda: backend.receive_messages(QUEUE, 100, HIDDEN))
            if len(received) >= count:
                return received
            await asyncio.sleep(0.05)


async def _soon(pending: Awaitable[T]) -> T:
    return await asyncio.wait_for(pending, PATIENCE)
