"""Conformance tests of queues and sending."""

from __future__ import annotations

import asyncio
import json
from importlib.metadata import entry_points

import pytest

from tasker.errors import InvalidQueueName, MessagingError
from tasker.messaging.port import Backend, Capabilities, TransactionalBackend
from tasker.settings.addresses import QUEUE_NAME_MAX
from tasker.settings.installed_tables import declared_table, overruling
from tasker.settings.nested import leaves, nested
from tasker.testing.messaging.suite import HIDDEN, OTHER, QUEUE, Suite, needs, numbered, receive


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


TOO_LONG = "a" * (QUEUE_NAME_MAX + 1)
BAD_NAMES = ["", " ", "a b", "a;b", 'a"b', "a'b", "a$b", "a--b", "a.b", "a/b", "a\n", "naïve", TOO_LONG]


class QueueContract(Suite):
    """A backend has the interface of one; queues are created, listed, deleted and named."""

    async def test_it_keeps_the_shape_of_a_backend(self, backend: Backend) -> None:
        assert isinstance(backend, Backend)
        assert isinstance(backend.capabilities, Capabilities)
        assert backend.provider_name()

    async def test_an_unknown_setting_is_refused_by_name(self, backend: Backend) -> None:
        point, *others = entry_points(group="tasker.backends", name=backend.provider_name())
        assert {other.value for other in others} <= {point.value}
        with pytest.raises(MessagingError, match="no_such_setting"):
            point.load().create({"no_such_setting": 1})

    async def test_the_settings_that_it_declares_are_taken(self, backend: Backend) -> None:
        point = next(iter(entry_points(group="tasker.backends", name=backend.provider_name())))
        module = point.load()
        kind = declared_table(point.name, module)
        if kind is None:
            pytest.skip("it declares no settings")
        settings = {path: value for path, value in leaves(kind().to_dict()) if path not in overruling(kind)}
        assert module.create(nested(settings)).provider_name() == point.name

    async def test_an_open_backend_is_healthy(self, backend: Backend) -> None:
        assert await backend.health_check() is True

    async def test_it_may_be_opened_twice_and_closed_twice(self, backend: Backend) -> None:
        await backend.open()
        await backend.close()
        await backend.close()

    async def test_a_transactional_backend_brings_its_sql(self, backend: Backend) -> None:
        needs(backend.capabilities.transactional, "transactional")
        assert isinstance(backend, TransactionalBackend)
        names = backend.transactional_sql()
        scripts = backend.install_sql()
        for name in (names.call, names.claim, names.missing):
            assert any(f"function {name}(" in sql for _, sql in scripts), name

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
        assert await receive(backend) == [{"n": 1}]

    async def test_a_queue_may_be_deleted_twice_and_is_empty_when_made_again(self, backend: Backend) -> None:
        await backend.create_queue(QUEUE)
        await backend.send_message(QUEUE, b'{"n": 1}')
        await backend.delete_queue(QUEUE)
        await backend.delete_queue(QUEUE)
        assert not await backend.queue_exists(QUEUE)
        assert QUEUE not in await backend.list_queues()
        await backend.create_queue(QUEUE)
        assert await receive(backend) == []

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
        assert await receive(backend, first) == [{"to": first}]
        assert await receive(backend, second) == [{"to": second}]

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
