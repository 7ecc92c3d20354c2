"""Sending and receiving."""

from __future__ import annotations

import asyncio
import json

import pytest

from tasker.contracts.messaging import Backend
from tasker.testing.messaging.suite import HIDDEN, QUEUE, Suite, numbered, receive


class Sending(Suite):
    """Messages arrive in order, once, and unchanged."""

    async def test_messages_arrive_in_the_order_they_were_sent(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        ids = [await backend.send_message(QUEUE, numbered(n)) for n in range(5)]
        received = await backend.receive_messages(QUEUE, 10, HIDDEN)
        assert [message.message_id for message in received] == ids
        assert [json.loads(message.payload)["n"] for message in received] == list(range(5))
        assert {(message.queue, message.read_count) for message in received} == {(QUEUE, 1)}

    async def test_a_batch_arrives_in_order_with_its_ids(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        ids = await backend.send_messages(QUEUE, [numbered(n) for n in range(20)])
        assert len(set(ids)) == 20
        received = await backend.receive_messages(QUEUE, 20, HIDDEN)
        assert [message.message_id for message in received] == ids
        assert [json.loads(message.payload)["n"] for message in received] == list(range(20))

    async def test_an_empty_batch_sends_nothing(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        assert await backend.send_messages(QUEUE, []) == []
        assert await receive(backend) == []

    async def test_receiving_stops_at_the_limit(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        await backend.send_messages(QUEUE, [numbered(n) for n in range(5)])
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
        assert await receive(backend) == [value]

    async def test_calls_at_the_same_time_get_disjoint_messages(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        ids = await backend.send_messages(QUEUE, [numbered(n) for n in range(100)])
        batches = await asyncio.gather(*(backend.receive_messages(QUEUE, 15, HIDDEN) for _ in range(8)))
        received = [message.message_id for batch in batches for message in batch]
        assert sorted(received) == sorted(ids)

    async def test_ten_thousand_messages_arrive_once_each(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        for start in range(0, 10_000, 1_000):
            await backend.send_messages(QUEUE, [numbered(n) for n in range(start, start + 1_000)])
        seen: list[int] = []
        while batch := await backend.receive_messages(QUEUE, 700, 3600.0):
            seen += [json.loads(message.payload)["n"] for message in batch]
        assert sorted(seen) == list(range(10_000))
