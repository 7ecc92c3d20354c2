from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
import redis.asyncio

from tasker.errors import BackendUnavailable, MessagingError
from tasker.messaging.port import Backend, MessageAvailable, QueueStats
from tasker_redis import create
from tasker_redis.backend import RedisBackend
from tasker_redis.settings import RedisSettings
from tasker_redis.unsettled import Receipt, UnsettledMessages
from tests.contract.broker_contract import BrokerContract
from tests.support.servers import brokers

GROUP = "tasker"


@pytest.fixture(scope="module")
def private_broker() -> Iterator[brokers.PrivateServer]:
    with brokers.private_server(brokers.REDIS) as server:
        yield server


class Rig:
    """A backend under a prefix of its own, and a plain client to look behind it."""

    def __init__(self, url: str) -> None:
        self.url, self.prefix = url, f"tasker_test_{uuid4().hex[:8]}"
        self.server: Any = redis.asyncio.Redis.from_url(url)
        self.backend = self.another()

    def another(self) -> RedisBackend:
        return create({"url": self.url, "prefix": self.prefix})

    def stream(self, queue: str) -> str:
        return f"{self.prefix}:stream:{queue}"

    async def advance(self, seconds: float) -> None:
        """Make everything older: the server's clock cannot be set."""
        for queue in await self.backend.list_queues():
            for member in await self.server.zrange(f"{self.prefix}:delayed:{queue}", 0, -1):
                await self.server.zincrby(f"{self.prefix}:delayed:{queue}", -seconds * 1000, member)
            await self._age_pending(self.stream(queue), round(seconds * 1000))

    async def _age_pending(self, stream: str, milliseconds: int) -> None:
        for entry in await self.server.xpending_range(stream, GROUP, "-", "+", 100_000):
            idle = entry["time_since_delivered"] + milliseconds
            message, consumer = entry["message_id"], entry["consumer"]
            await self.server.xclaim(stream, GROUP, consumer, 0, [message], idle=idle, justid=True)

    async def clean(self) -> None:
        await self.backend.close()
        if keys := await self.server.keys(f"{self.prefix}*"):
            await self.server.delete(*keys)
        await self.server.aclose()


@pytest_asyncio.fixture
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    """On the shared server; on one of our own where the test restarts it."""
    own = request.node.name.startswith("test_after_a_restart")
    url = request.getfixturevalue("private_broker").url if own else brokers.shared_url(brokers.REDIS)
    rig = Rig(url)
    await rig.backend.open()
    yield rig
    await rig.clean()


@pytest_asyncio.fixture
async def rival(rig: Rig) -> AsyncIterator[RedisBackend]:
    rival = rig.another()
    await rival.open()
    yield rival
    await rival.close()


class Aged(RedisBackend):
    """Tells ages as if `seconds` more had passed: the age of a message is in its stream id, which nobody can change."""

    seconds = 0.0

    async def queue_stats(self, queue: str) -> QueueStats:
        stats = await super().queue_stats(queue)
        age = None if stats.oldest_seconds is None else stats.oldest_seconds + self.seconds
        return replace(stats, oldest_seconds=age)


class TestRedis(BrokerContract):
    @pytest.fixture
    def backend(self, rig: Rig, request: pytest.FixtureRequest) -> Backend:
        self.rig, self.request = rig, request
        rig.backend.__class__ = Aged
        return rig.backend

    async def advance(self, backend: Backend, seconds: float) -> None:
        assert isinstance(backend, Aged)
        backend.seconds += seconds
        await super().advance(backend, seconds)


@pytest.fixture
def backend(rig: Rig) -> RedisBackend:
    return rig.backend


async def test_a_message_that_came_back_and_went_to_a_rival_is_no_longer_ours(
    backend: RedisBackend, rival: RedisBackend
) -> None:
    await backend.create_queue("q")
    message_id = await backend.send_message("q", b"{}")
    await backend.receive_messages("q", 1, 0.0)
    (theirs,) = await rival.receive_messages("q", 1, 60.0)
    assert (theirs.message_id, theirs.read_count) == (message_id, 2)
    assert await backend.extend_visibility("q", message_id, 60.0) is False
    assert await backend.ack_message("q", message_id) is False
    assert await rival.ack_message("q", message_id) is True


async def test_the_stream_does_not_grow_with_what_was_settled(rig: Rig) -> None:
    await rig.backend.create_queue("q")
    await rig.backend.send_messages("q", [b"{}"] * 20)
    for message in await rig.backend.receive_messages("q", 20, 60.0):
        await rig.backend.ack_message("q", message.message_id)
    assert await rig.server.xlen(rig.stream("q")) == 0
    assert (await rig.server.xpending(rig.stream("q"), GROUP))["pending"] == 0


async def test_new_messages_and_those_that_come_back_take_turns(backend: RedisBackend) -> None:
    await backend.create_queue("q")
    await backend.send_messages("q", [b"poison", b"1", b"2", b"3"])
    seen = []
    for _ in range(8):
        (message,) = await backend.receive_messages("q", 1, 60.0)
        seen.append(message.payload)
        await backend.nack_message("q", message.message_id)
    assert {b"poison", b"1", b"2", b"3"} == {*seen}


async def test_what_came_back_is_found_behind_a_thousand_messages_in_other_hands(rig: Rig, rival: RedisBackend) -> None:
    await rig.backend.create_queue("q")
    *_, last = await rig.backend.send_messages("q", [b"{}"] * 1500)
    for _ in range(2):
        await rival.receive_messages("q", 1000, 3600.0)
    await rival.nack_message("q", last)
    found = [message for _ in range(20) for message in await rig.backend.receive_messages("q", 1, 60.0)]
    assert [message.message_id for message in found] == [last]


async def test_a_delayed_message_is_pushed_when_it_is_due_and_keeps_its_id(backend: RedisBackend) -> None:
    await backend.create_queue("q")
    async with aclosing(backend.subscribe_many(["q"])) as notifications:
        await anext(notifications)
        message_id = await backend.send_message_with_delay("q", b"later:\x00", 0.05)
        assert await asyncio.wait_for(anext(notifications), 60) == MessageAvailable("q")
    (message,) = await backend.receive_messages("q", 1, 30)
    assert (message.message_id, message.payload, message.read_count) == (message_id, b"later:\x00", 1)


async def test_a_message_that_was_given_back_is_pushed(
    backend: RedisBackend, rival: RedisBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasker_redis.backend.WAIT_MS", 20)
    await backend.create_queue("q")
    await backend.send_message("q", b"{}")
    (message,) = await backend.receive_messages("q", 1, 60.0)
    async with aclosing(rival.subscribe_many(["q"])) as notifications:
        await anext(notifications)
        await backend.nack_message("q", message.message_id, 0.05)
        assert await asyncio.wait_for(anext(notifications), 60) == MessageAvailable("q")


async def test_many_messages_are_one_notification(backend: RedisBackend) -> None:
    await backend.create_queue("q")
    async with aclosing(backend.subscribe_many(["q"])) as notifications:
        await anext(notifications)
        await backend.send_messages("q", [b"{}"] * 50)
        await asyncio.wait_for(anext(notifications), 60)
        await backend.receive_messages("q", 50, 60.0)
        again = asyncio.ensure_future(anext(notifications))
        await backend.create_queue("other")
        assert not again.done()
        await backend.send_message("q", b"{}")
        assert await asyncio.wait_for(again, 60) == MessageAvailable("q")


async def test_consumers_of_dead_processes_are_removed_once_they_hold_nothing(
    rig: Rig, rival: RedisBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = rig.backend
    await backend.create_queue("q")
    await backend.send_message("q", b"{}")
    await backend.receive_messages("q", 1, 0.0)
    monkeypatch.setattr("tasker_redis.backend.FORGOTTEN_MS", -1)
    await rival.create_queue("q")
    assert (await backend.queue_stats("q")).consumers == 1
    (message,) = await rival.receive_messages("q", 1, 60.0)
    assert (await backend.queue_stats("q")).consumers == 2
    await rival.create_queue("q")
    assert (await backend.queue_stats("q")).consumers == 1
    assert await rival.ack_message("q", message.message_id) is True


async def test_queues_are_made_again_when_the_server_came_back_without_its_data(rig: Rig, rival: RedisBackend) -> None:
    for one in (rig.backend, rival):
        await one.create_queue("shared")
    await rig.backend.create_queue("ours")
    before = await rig.backend.send_message("ours", b"{}")
    await rig.server.delete(*await rig.server.keys(f"{rig.prefix}*"))
    await rival.create_queue("shared")
    after = await rig.backend.send_message("ours", b"{}")
    assert after > before
    assert await rig.backend.list_queues() == ["ours", "shared"]
    assert await rig.backend.ack_message("ours", before) is False


async def test_a_queue_that_another_process_deleted_stays_deleted(backend: RedisBackend, rival: RedisBackend) -> None:
    await backend.create_queue("q")
    await rival.delete_queue("q")
    with pytest.raises(MessagingError, match="'q' does not exist"):
        await backend.send_message("q", b"{}")
    assert not await backend.queue_exists("q")


async def test_stats_count_what_is_delayed(backend: RedisBackend) -> None:
    await backend.create_queue("q")
    await backend.send_message_with_delay("q", b"{}", 60)
    stats = await backend.queue_stats("q")
    assert (stats.depth, stats.oldest_seconds, stats.consumers) == (1, None, 0)


async def test_a_strangers_message_is_received_with_an_id_of_ours(rig: Rig) -> None:
    await rig.backend.create_queue("q")
    await rig.server.xadd(rig.stream("q"), {"payload": b"hello"})
    await rig.server.xadd(rig.stream("q"), {"something": b"else"})
    first, second = await rig.backend.receive_messages("q", 10, 30)
    assert (first.payload, second.payload) == (b"hello", b"")
    assert await rig.backend.ack_message("q", first.message_id) is True
    assert await rig.backend.ack_message("q", second.message_id) is True


async def test_a_delay_that_cannot_be_kept_is_refused(backend: RedisBackend) -> None:
    await backend.create_queue("q")
    with pytest.raises(MessagingError, match="more than Redis can hide a message for"):
        await backend.send_message_with_delay("q", b"{}", 31 * 24 * 3600)


async def test_subscribing_to_a_missing_queue_is_an_error(backend: RedisBackend) -> None:
    with pytest.raises(MessagingError, match="'q' does not exist"):
        await anext(backend.subscribe_many(["q"]))


async def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    backend = create({"url": f"redis://:secret@127.0.0.1:{brokers.free_port()}/0"})
    with pytest.raises(BackendUnavailable, match=r"Redis does not answer.*127\.0\.0\.1:\d+") as caught:
        await backend.open()
    assert "secret" not in str(caught.value) + str(caught.value.hint)
    with pytest.raises(BackendUnavailable):
        await backend.open()
    await backend.close()


@pytest.mark.parametrize("password", ["hunter2/x", "hunter2?x", "hunter2#x", "1234/hunter2", "/hunter2", "hunter[2"])
def test_a_url_with_a_raw_character_in_its_password_is_refused_without_it(password: str) -> None:
    with pytest.raises(MessagingError, match="cannot be parsed") as caught:
        create({"url": f"redis://u:{password}@localhost"})
    assert "percent-encode" in str(caught.value.hint)
    assert not any(part in repr(caught.value) for part in ("hunter", "1234"))


async def test_a_url_that_the_client_refuses_is_not_quoted() -> None:
    backend = RedisBackend(RedisSettings(url="redis://u:hunter2/x@localhost"))
    with pytest.raises(MessagingError, match="address of Redis") as caught:
        await backend.open()
    assert "hunter2" not in repr(caught.value)


async def test_a_backend_that_is_not_open_says_so() -> None:
    backend = create({})
    with pytest.raises(BackendUnavailable, match="is not open"):
        await backend.send_message("q", b"{}")
    assert await backend.health_check() is False


@pytest.mark.parametrize("settings", [{"urls": "redis://localhost"}, {"url": "http://localhost"}])
async def test_settings_that_make_no_sense_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(MessagingError, match=r"no setting urls|address of Redis") as caught:
        await create(settings).open()
    assert caught.value.retryable is False


def test_the_engines_database_is_passed_over() -> None:
    assert create({"channel": object()}).provider_name() == "redis"


async def test_a_message_that_came_to_us_again_is_not_settled_by_what_we_knew_of_its_former_delivery(rig: Rig) -> None:
    await rig.backend.create_queue("q")
    await rig.backend.send_message("q", b"work")
    (first,) = await rig.backend.receive_messages("q", 1, 1)
    receipt = rig.backend._unsettled.get("q", first.message_id)
    assert receipt is not None
    await rig.advance(60)
    (again,) = await rig.backend.receive_messages("q", 1, 60)
    assert again.read_count == 2
    rig.backend._unsettled.put("q", first.message_id, receipt)  # as if the answer of the second had been lost

    assert not await rig.backend.ack_message("q", first.message_id)
    assert (await rig.backend.queue_stats("q")).depth == 1


def test_held_messages_are_bounded_and_the_oldest_gives_way() -> None:
    held = UnsettledMessages(limit=2)
    for message_id in (1, 2, 3):
        held.put("q", message_id, Receipt(b"1-0", 1))
    assert [held.get("q", message_id) is None for message_id in (1, 2, 3)] == [True, False, False]


@pytest.mark.parametrize("turns", range(0, 300, 12))
async def test_a_subscriber_that_is_cancelled_at_any_moment_ends(rig: Rig, turns: int) -> None:
    """After so many turns of the loop: while it connects, asks, or waits."""
    await rig.backend.create_queue("q")

    async def follow() -> None:
        async with aclosing(rig.backend.subscribe_many(["q"])) as news:
            async for _ in news:
                pass

    subscriber = asyncio.create_task(follow())
    for _ in range(turns):
        await asyncio.sleep(0)
    subscriber.cancel()
    _, hanging = await asyncio.wait([subscriber], timeout=60)

    assert not hanging
