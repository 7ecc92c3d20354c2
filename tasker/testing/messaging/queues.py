"""Tests of a backend's identity and its queues."""

from __future__ import annotations

import json
from importlib.metadata import entry_points

import pytest

from tasker.contracts.messaging import QUEUE_NAME_MAX, Backend, Capabilities, TransactionalBackend
from tasker.errors import InvalidQueueName, MessagingError
from tasker.settings.installed import declared_table, overruling
from tasker.settings.layering import leaves, nested
from tasker.testing.messaging.suite import HIDDEN, OTHER, QUEUE, Suite, needs, receive

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
        own = {path: value for path, value in leaves(kind().model_dump()) if path not in overruling(kind)}
        assert module.create(nested(own)).provider_name() == point.name

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
