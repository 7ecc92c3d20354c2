from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta

import aio_pika
import pytest
import pytest_asyncio

from tasker.errors import BackendUnavailable, MessagingError
from tasker.messaging.port import MessageAvailable
from tasker_rabbitmq import create, link
from tasker_rabbitmq.backend import RabbitmqBackend
from tasker_rabbitmq.received import FREE_RETURNS, Receipt, UnsettledMessages
from tasker_rabbitmq.topology import SILENT_SECONDS, rounded_up
from tests.contract.broker_contract import BrokerContract
from tests.contract.rabbitmq_rig import Rig
from tests.support.servers import brokers


@pytest.fixture(scope="module")
def private_broker() -> Iterator[brokers.PrivateServer]:
    with brokers.private_server(brokers.RABBITMQ) as server:
        yield server


@pytest_asyncio.fixture
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    """On the shared broker; on one of our own where the test restarts it."""
    own = request.node.name.startswith(("test_after_a_restart", "test_a_queue_that_is_silent"))
    url = request.getfixturevalue("private_broker").url if own else brokers.shared_url(brokers.RABBITMQ)
    rig = Rig(url)
    await rig.backend.open()
    yield rig
    await rig.clean()


@pytest.fixture
def rabbitmq(rig: Rig) -> RabbitmqBackend:
    return rig.backend


class TestRabbitmq(BrokerContract):
    """The suite, and what is common to brokers."""


async def test_a_delayed_message_is_pushed_when_it_is_due(rabbitmq: RabbitmqBackend) -> None:
    await rabbitmq.create_queue("q")
    async with aclosing(rabbitmq.subscribe_many(["q"])) as notifications:
        await anext(notifications)
        await rabbitmq.send_message_with_delay("q", b"later", 0.05)
        assert await asyncio.wait_for(anext(notifications), 60) == MessageAvailable("q")
    (message,) = await rabbitmq.receive_messages("q", 1, 30)
    assert message.payload == b"later"


async def test_a_queue_that_is_silent_under_load_is_not_told_to_be_empty(
    rig: Rig, private_broker: brokers.PrivateServer
) -> None:
    await rig.backend.create_queue("q")
    await rig.backend.send_messages("q", [b"{}"] * 3)
    leader = f"'%2F_{rig.prefix}q'"
    later = f"spawn(fun() -> timer:sleep({round(SILENT_SECONDS * 2000)}), sys:resume({leader}) end)."
    await asyncio.to_thread(private_broker.evaluate, f"sys:suspend({leader}), {later}")

    assert (await rig.backend.queue_stats("q")).depth == 3


async def test_what_a_closed_process_held_goes_to_another(rig: Rig) -> None:
    await rig.backend.create_queue("q")
    message_id = await rig.backend.send_message("q", b"{}")
    await rig.backend.receive_messages("q", 1, 3600)
    await rig.backend.close()
    rival = rig.another()
    await rival.open()
    (message,) = await rival.receive_messages("q", 1, 3600)
    assert (message.message_id, message.read_count) == (message_id, 2)
    await rival.ack_message("q", message_id)
    await rival.close()


async def test_pushed_messages_that_nobody_takes_go_to_another_process(rig: Rig) -> None:
    await rig.backend.create_queue("q")
    rival = rig.another()
    await rival.open()
    async with aclosing(rig.backend.subscribe_many(["q"])) as idle:
        await anext(idle)
        await rig.backend.send_messages("q", [b"1", b"2"])
        async with asyncio.timeout(60), aclosing(rival.subscribe_many(["q"])) as news:
            payloads: list[bytes] = []
            while len(payloads) < 2:
                await anext(news)
                payloads += [message.payload for message in await rival.receive_messages("q", 10, 30)]
    assert sorted(payloads) == [b"1", b"2"]
    await rival.close()


async def test_a_neglected_subscription_is_fed_again_when_it_asks(rig: Rig) -> None:
    await rig.backend.create_queue("q")
    async with asyncio.timeout(60), aclosing(rig.backend.subscribe_many(["q"])) as news:
        await anext(news)
        await rig.backend.send_message("q", b"1")
        await anext(news)
        feed = rig.backend._feeds["q"]
        while feed.running or feed.waiting:
            await asyncio.sleep(0.05)
        while not (again := await rig.backend.receive_messages("q", 1, 30)):
            assert await anext(news) == MessageAvailable("q")
        assert [message.payload for message in again] == [b"1"]


async def test_a_subscriber_that_settles_nothing_still_gets_more_than_the_prefetch(rig: Rig) -> None:
    backend = rig.another(prefetch_count=3)
    await backend.open()
    await rig.backend.create_queue("q")
    await rig.backend.send_messages("q", [b"%d" % n for n in range(10)])
    received: list[bytes] = []
    async with asyncio.timeout(60), aclosing(backend.subscribe_many(["q"])) as news:
        await anext(news)
        while len(received) < 10:
            received += [message.payload for message in await backend.receive_messages("q", 10, 30)]
            await asyncio.sleep(0)
    await backend.close()
    assert sorted(received) == [b"%d" % n for n in range(10)]


async def test_a_message_that_is_given_back_again_and_again_waits_longer_and_ends_with_the_dead(rig: Rig) -> None:
    backend = rig.another(delivery_limit=FREE_RETURNS + 1)
    await backend.open()
    await backend.create_queue("q")
    await backend.send_message("q", b"poison")
    for _ in range(FREE_RETURNS):
        (message,) = await backend.receive_messages("q", 1, 30)
        await backend.nack_message("q", message.message_id)
    (message,) = await backend.receive_messages("q", 1, 30)
    await backend.nack_message("q", message.message_id)
    async with asyncio.timeout(60), await aio_pika.connect(rig.url) as connection:
        dead = await (await connection.channel()).get_queue(f"{rig.prefix}dead.letters")
        while (letter := await dead.get(fail=False)) is None:
            await asyncio.sleep(0.02)
        await letter.ack()
    assert letter.body == b"poison"
    assert (await backend.queue_stats("q")).depth == 0
    await backend.close()


async def test_immediate_returns_are_bounded(rabbitmq: RabbitmqBackend) -> None:
    await rabbitmq.create_queue("q")
    await rabbitmq.send_message("q", b"{}")
    for count in range(1, FREE_RETURNS + 2):
        (message,) = await rabbitmq.receive_messages("q", 1, 30)
        assert message.read_count == count
        await rabbitmq.nack_message("q", message.message_id)
    assert [*rabbitmq._topology._delays["q"]] == ["q.delay.100"]
    async with asyncio.timeout(60):
        while not (again := await rabbitmq.receive_messages("q", 1, 30)):
            await asyncio.sleep(0.02)
    assert again[0].read_count == FREE_RETURNS + 2


async def test_stats_count_what_is_delayed_and_who_consumes(rabbitmq: RabbitmqBackend) -> None:
    await rabbitmq.create_queue("q")
    await rabbitmq.send_message("q", b"{}")
    await rabbitmq.send_message_with_delay("q", b"{}", 60)
    assert (await rabbitmq.queue_stats("q")).depth == 2
    async with aclosing(rabbitmq.subscribe_many(["q"])) as notifications:
        await anext(notifications)
        assert (await rabbitmq.queue_stats("q")).consumers == 1


async def test_queues_made_at_the_same_time_do_not_disturb_each_other(rabbitmq: RabbitmqBackend) -> None:
    async def make_and_send(queue: str) -> None:
        await rabbitmq.create_queue(queue)
        await rabbitmq.send_message(queue, b"{}")

    names = ["a", "a", "b", "c", "c", "d"]
    await asyncio.gather(*(make_and_send(name) for name in names), *(rabbitmq.queue_exists(f"no{n}") for n in range(5)))
    assert [(await rabbitmq.queue_stats(name)).depth for name in "abcd"] == [2, 1, 2, 1]


async def test_a_queue_has_one_consumer_however_many_subscribe_and_receive_at_once(rabbitmq: RabbitmqBackend) -> None:
    await rabbitmq.create_queue("q")
    async with aclosing(rabbitmq.subscribe_many(["q"])) as one, aclosing(rabbitmq.subscribe_many(["q"])) as two:
        asks = [asyncio.ensure_future(anext(one)), asyncio.ensure_future(anext(two))]
        while "q" not in rabbitmq._feeds:
            await asyncio.sleep(0)
        await asyncio.gather(*asks, *(rabbitmq.receive_messages("q", 1, 30) for _ in range(3)))
        assert (await rabbitmq.queue_stats("q")).consumers == 1
    assert (await rabbitmq.queue_stats("q")).consumers == 0


async def test_a_strangers_message_is_received_with_an_id_of_ours(rig: Rig) -> None:
    await rig.backend.create_queue("q")
    async with await aio_pika.connect(rig.url) as connection:
        channel = await connection.channel()
        await channel.default_exchange.publish(aio_pika.Message(b"hello", message_id="no-number"), f"{rig.prefix}q")
    (message,) = await rig.backend.receive_messages("q", 1, 30)
    assert message.payload == b"hello"
    assert await rig.backend.ack_message("q", message.message_id) is True


async def test_a_queue_that_was_removed_by_others_is_missed_and_leaves_held_messages_alone(rig: Rig) -> None:
    await rig.backend.create_queue("kept")
    await rig.backend.create_queue("removed")
    await rig.backend.send_message("kept", b"{}")
    async with aclosing(rig.backend.subscribe_many(["removed"])) as notifications:
        await anext(notifications)
        (message,) = await rig.backend.receive_messages("kept", 1, 30)
        rival = rig.another()
        await rival.open()
        await rival.delete_queue("removed")
        await rival.close()
        async with asyncio.timeout(60):
            while rig.backend._feeds["removed"].running:
                await asyncio.sleep(0.02)
        with pytest.raises(MessagingError, match="'removed' does not exist"):
            await rig.backend.receive_messages("removed", 1, 30)
    with pytest.raises(MessagingError, match="'removed' does not exist"):
        await rig.backend.send_message("removed", b"{}")
    assert await rig.backend.ack_message("kept", message.message_id) is True


async def test_a_broker_that_is_not_there_is_named_without_the_password() -> None:
    backend = create({"url": f"amqp://someone:secret@127.0.0.1:{brokers.free_port()}/%2F"})
    with pytest.raises(BackendUnavailable, match=r"RabbitMQ at 127\.0\.0\.1:\d+") as caught:
        await backend.open()
    assert "secret" not in str(caught.value) + str(caught.value.hint)
    await backend.close()


@pytest.mark.parametrize("password", ["hunter2/x", "hunter2?x", "hunter2#x", "1234/hunter2", "/hunter2", "hunter[2"])
def test_a_url_with_a_raw_character_in_its_password_is_refused_without_it(password: str) -> None:
    with pytest.raises(MessagingError, match="cannot be parsed") as caught:
        create({"url": f"amqp://u:{password}@localhost"})
    assert "percent-encode" in str(caught.value.hint)
    assert not any(part in repr(caught.value) for part in ("hunter", "1234"))


async def test_a_backend_that_is_not_open_says_so() -> None:
    backend = create({})
    with pytest.raises(BackendUnavailable, match="is not open"):
        await backend.send_message("q", b"{}")
    assert await backend.health_check() is False


def test_an_unknown_setting_is_refused_with_the_known_ones() -> None:
    with pytest.raises(MessagingError, match="no setting urls") as caught:
        create({"urls": "amqp://localhost"})
    assert "prefetch_count" in str(caught.value.hint)


@pytest.mark.parametrize(
    ("seconds", "milliseconds"),
    [(60, 60_000), (0.5, 500), (0.05, 50), (0.0001, 1), (1.234, 1300), (3600, 3_600_000), (99.1, 100_000), (0.1, 100)],
)
def test_delays_are_rounded_up_to_two_digits(seconds: float, milliseconds: int) -> None:
    assert rounded_up(seconds) == milliseconds


async def test_a_call_that_was_cancelled_halfway_harms_no_later_one(rabbitmq: RabbitmqBackend) -> None:
    """As when a process stops a part that was looking at its queue."""
    await rabbitmq.create_queue("looked_at")
    for turns in range(15):
        look = asyncio.create_task(rabbitmq.queue_stats("looked_at"))
        for _ in range(turns):
            await asyncio.sleep(0)
        look.cancel()
        await asyncio.gather(look, return_exceptions=True)
        assert (await rabbitmq.queue_stats("looked_at")).depth == 0


class OpenChannel:
    is_closed = False


def test_held_messages_are_bounded() -> None:
    held = UnsettledMessages(limit=2)
    for message_id in (1, 2):
        assert held.room() == 3 - message_id
        held.put("q", Receipt(message_id, b"", 1, datetime.now(UTC) - timedelta(1), OpenChannel(), 1))  # type: ignore[arg-type]
    with pytest.raises(MessagingError, match="2 received messages are not settled"):
        held.room()


async def test_a_call_that_the_client_would_never_end_ends_with_its_channel_alone(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = rig.backend
    await backend.create_queue("q")
    await backend.send_message("q", b"{}")
    (message,) = await backend.receive_messages("q", 1, 30)
    channels = dict(backend._link._channels)
    channel = channels.pop(link.RECEIVE)
    full: asyncio.Queue[object] = asyncio.Queue(1)
    full.put_nowait(None)
    monkeypatch.setattr(channel, "write_queue", full)  # as when the connection was lost while much was sent
    monkeypatch.setattr(link, "LONGEST_SECONDS", 0.05)
    with pytest.raises(BackendUnavailable, match="gave no answer in time"):
        await backend.ack_message("q", message.message_id)
    monkeypatch.undo()
    async with asyncio.timeout(30):  # the message comes back, since its channel is closed
        while not (again := await backend.receive_messages("q", 1, 30)):
            await asyncio.sleep(0.02)
    assert again[0].message_id == message.message_id
    assert channels.items() <= backend._link._channels.items(), "the others stay"


async def test_what_the_client_cancels_is_a_lost_connection_and_a_cancelled_caller_stays_cancelled(rig: Rig) -> None:
    async def wait(pending: asyncio.Future[None]) -> None:
        async with rig.backend._link.answered():
            await pending

    given_up: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    given_up.cancel()
    with pytest.raises(BackendUnavailable, match="was lost"):
        await wait(given_up)
    caller = asyncio.create_task(wait(asyncio.get_running_loop().create_future()))
    await asyncio.sleep(0)
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller


async def test_watching_a_queue_does_not_use_up_the_deliveries_of_its_first_message(rig: Rig) -> None:
    await rig.backend.create_queue("q")
    await rig.backend.send_message("q", b"{}")
    for _ in range(5):
        while not (stats := await rig.backend.queue_stats("q")).depth:
            await asyncio.sleep(0.02)  # the look before this one is on its way back
        assert stats.oldest_seconds is not None
    (message,) = await rig.backend.receive_messages("q", 1, 30)
    assert message.read_count == 2
