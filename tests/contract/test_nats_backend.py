from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing, suppress
from datetime import datetime, timedelta
from uuid import uuid4

import nats
import pytest
import pytest_asyncio

from tasker.errors import BackendUnavailable, MessagingError
from tasker.messaging.port import MessageAvailable
from tasker_nats import create
from tasker_nats.backend import NatsBackend
from tasker_nats.unsettled import Receipt, UnsettledMessages
from tests.contract.broker_contract import BrokerContract
from tests.support.servers import brokers


class Shifted(NatsBackend):
    """Its clock is ahead by what a test sets, and it notes what the server is to bring back later."""

    rig: Rig

    def _now(self) -> datetime:
        return super()._now() + timedelta(seconds=self.rig.seconds)

    def _monotonic(self) -> float:
        return super()._monotonic() + self.rig.seconds

    async def _verdict(self, reply: str, verdict: bytes) -> bool:
        done = await super()._verdict(reply, verdict)
        if verdict.startswith(b"-NAK {"):
            delay = json.loads(verdict.removeprefix(b"-NAK "))["delay"] / 1e9
            self.rig.put_off.append((self._monotonic() + delay, reply))
        return done


@pytest.fixture(scope="module")
def private_broker() -> Iterator[brokers.PrivateServer]:
    with brokers.private_server(brokers.NATS) as server:
        yield server


class Rig:
    """A backend under a prefix of its own, and the time of all backends made here."""

    def __init__(self, url: str, ack_wait_seconds: float = 3600) -> None:
        self.url, self.prefix, self.seconds = url, f"tasker_test_{uuid4().hex[:8]}", 0.0
        self.ack_wait_seconds = ack_wait_seconds
        self.put_off: list[tuple[float, str]] = []
        self.backend = self.another()

    def another(self, **settings: object) -> Shifted:
        made = create({"url": self.url, "prefix": self.prefix, "ack_wait_seconds": self.ack_wait_seconds, **settings})
        made.__class__ = Shifted
        assert isinstance(made, Shifted)
        made.rig = self
        return made

    async def advance(self, seconds: float) -> None:
        """Set the clock ahead, and end the server's delays that would be over by then."""
        self.seconds += seconds
        now = self.backend._monotonic()
        for _, reply in [one for one in self.put_off if one[0] <= now]:
            await self.backend._link.request(reply, b"-NAK")
        self.put_off = [one for one in self.put_off if one[0] > now]

    async def clean(self) -> None:
        await self.backend.close()
        client = await nats.connect(self.url)
        streams = client.jetstream()
        for info in await streams.streams_info():
            if (info.config.name or "").startswith(self.prefix):
                await streams.delete_stream(info.config.name or "")
        await client.close()


@pytest_asyncio.fixture
async def rig(request: pytest.FixtureRequest) -> AsyncIterator[Rig]:
    """On the shared server; on one of our own where the test restarts it.

    When the server takes back what a dead process held is its own clock's matter: there it does so quickly.
    """
    name = request.node.name
    own = name.startswith("test_after_a_restart")
    url = request.getfixturevalue("private_broker").url if own else brokers.shared_url(brokers.NATS)
    rig = Rig(url, ack_wait_seconds=2) if name.startswith("test_what_a_dead_process_held") else Rig(url)
    await rig.backend.open()
    yield rig
    await rig.clean()


class TestNats(BrokerContract):
    """The suite, and what is common to brokers."""


@pytest.fixture
def backend(rig: Rig) -> NatsBackend:
    return rig.backend


@pytest_asyncio.fixture
async def rival(rig: Rig) -> AsyncIterator[NatsBackend]:
    rival = rig.another()
    await rival.open()
    yield rival
    await rival.close()


async def test_a_message_that_came_back_and_went_to_a_rival_is_no_longer_ours(
    backend: NatsBackend, rival: NatsBackend
) -> None:
    await backend.create_queue("q")
    message_id = await backend.send_message("q", b"{}")
    await backend.receive_messages("q", 1, 0.0)
    await backend.receive_messages("q", 0, 0.0)
    (theirs,) = await rival.receive_messages("q", 1, 60.0)
    assert (theirs.message_id, theirs.read_count) == (message_id, 2)
    assert await backend.extend_visibility("q", message_id, 60.0) is False
    assert await backend.ack_message("q", message_id) is False
    assert await rival.ack_message("q", message_id) is True


async def test_an_overdue_message_is_given_back_while_nobody_asks(rig: Rig, rival: NatsBackend) -> None:
    await rig.backend.create_queue("q")
    await rig.backend.send_message("q", b"{}")
    await rig.backend.receive_messages("q", 1, 0.0)
    async with asyncio.timeout(60):
        while not (again := await rival.receive_messages("q", 1, 60.0)):
            await asyncio.sleep(0.05)
    assert again[0].read_count == 2


async def test_what_a_dead_process_held_is_taken_back_and_what_a_live_one_holds_is_not(
    rig: Rig, rival: NatsBackend
) -> None:
    short = [rig.another(ack_wait_seconds=1) for _ in range(2)]
    for one in short:
        await one.open()
    alive, dead = short
    await alive.create_queue("q")
    kept, lost = await alive.send_messages("q", [b"1", b"2"])
    await alive.receive_messages("q", 1, 3600.0)
    await dead.receive_messages("q", 1, 3600.0)
    await dead.close()
    async with asyncio.timeout(60):
        while not (again := await rival.receive_messages("q", 10, 60.0)):
            await asyncio.sleep(0.05)
    assert [message.message_id for message in again] == [lost]
    assert await dead.ack_message("q", lost) is False
    assert await alive.ack_message("q", kept) is True
    await alive.close()


async def test_a_process_that_could_not_renew_in_time_no_longer_owns_its_messages(rig: Rig) -> None:
    await rig.backend.create_queue("q")
    message_id = await rig.backend.send_message("q", b"{}")
    await rig.backend.receive_messages("q", 1, 1_000_000.0)
    rig.seconds += 3601
    assert await rig.backend.ack_message("q", message_id) is False


async def test_a_delayed_message_keeps_its_id_and_is_counted_from_one(rig: Rig) -> None:
    await rig.backend.create_queue("q")
    message_id = await rig.backend.send_message_with_delay("q", b"later", 60.0)
    assert await rig.backend.receive_messages("q", 10, 30.0) == []
    await rig.advance(65)
    for reads in (1, 2):
        (message,) = await rig.backend.receive_messages("q", 10, 30.0)
        assert (message.message_id, message.read_count) == (message_id, reads)
        await rig.backend.nack_message("q", message_id)


async def test_a_delayed_message_that_nobody_looked_for_before_it_was_due_is_counted_from_one(rig: Rig) -> None:
    await rig.backend.create_queue("q")
    await rig.backend.send_message_with_delay("q", b"later", 60.0)
    await rig.advance(65)
    (message,) = await rig.backend.receive_messages("q", 1, 30.0)
    assert (message.payload, message.read_count) == (b"later", 1)


async def test_a_message_that_came_too_often_ends_with_the_dead_letters(rig: Rig) -> None:
    backend = rig.another(delivery_limit=3)
    await backend.open()
    await backend.create_queue("q")
    await backend.send_messages("q", [b"poison", b"good"])
    for _ in range(3):
        (message,) = await backend.receive_messages("q", 1, 30.0)
        assert message.payload == b"poison"
        await backend.nack_message("q", message.message_id)
    (message,) = await backend.receive_messages("q", 1, 30.0)
    assert message.payload == b"good"
    assert (await backend.queue_stats("q")).depth == 1
    client = await nats.connect(rig.url)
    letter = await client.jetstream().get_msg(f"{rig.prefix}-dead", 1)
    await client.close()
    assert (letter.subject, letter.data) == (f"{rig.prefix}.dead.q", b"poison")
    assert await backend.list_queues() == ["q"]
    await backend.close()


async def test_many_messages_are_one_notification(backend: NatsBackend) -> None:
    await backend.create_queue("q")
    async with aclosing(backend.subscribe_many(["q"])) as notifications:
        await anext(notifications)
        for _ in range(50):
            await backend.send_message("q", b"{}")
        assert await asyncio.wait_for(anext(notifications), 60) == MessageAvailable("q")
        assert len(await backend.receive_messages("q", 50, 60.0)) == 50


async def test_what_came_back_is_notified_after_a_quiet_time(
    backend: NatsBackend, rival: NatsBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasker_nats.backend.QUIET_SECONDS", 0.02)
    await backend.create_queue("q")
    await backend.send_message("q", b"{}")
    (message,) = await backend.receive_messages("q", 1, 60.0)
    async with asyncio.timeout(60), aclosing(rival.subscribe_many(["q"])) as notifications:
        await anext(notifications)
        await backend.nack_message("q", message.message_id)
        assert await anext(notifications) == MessageAvailable("q")


async def test_a_queue_that_another_process_deleted_is_missed(
    backend: NatsBackend, rival: NatsBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tasker_nats.link.REPLY_SECONDS", 0.2)
    await backend.create_queue("q")
    assert await backend.receive_messages("q", 1, 60.0) == []
    await rival.delete_queue("q")
    with pytest.raises(MessagingError, match="'q' does not exist"):
        await backend.receive_messages("q", 1, 60.0)
    with pytest.raises(MessagingError, match="'q' does not exist"):
        await backend.send_message("q", b"{}")


async def test_names_that_begin_with_a_hyphen_stay_apart_from_the_dead_letters(backend: NatsBackend) -> None:
    for queue in ("-dead", "dead", "-", "_"):
        await backend.create_queue(queue)
        await backend.send_message(queue, queue.encode())
    for queue in ("-dead", "dead", "-", "_"):
        assert [message.payload for message in await backend.receive_messages(queue, 10, 30)] == [queue.encode()]
    assert await backend.list_queues() == sorted(["-dead", "dead", "-", "_"])


async def test_a_strangers_message_is_received(rig: Rig) -> None:
    await rig.backend.create_queue("q")
    client = await nats.connect(rig.url)
    await client.jetstream().publish(f"{rig.prefix}.queue.q", b"hello", headers={"Status": "404"})
    await client.close()
    (message,) = await rig.backend.receive_messages("q", 10, 30)
    assert message.payload == b"hello"


async def test_after_a_restart_what_was_acknowledged_is_neither_counted_nor_kept(
    rig: Rig, private_broker: brokers.PrivateServer
) -> None:
    backend = rig.another(ack_wait_seconds=1)
    await backend.open()
    await backend.create_queue("q")
    await backend.send_messages("q", [b"{}"] * 3000)
    working = asyncio.create_task(_settle_until_lost(backend))
    while (await backend.queue_stats("q")).depth > 2500:
        await asyncio.sleep(0)
    await asyncio.to_thread(private_broker.restart)
    await working
    async with asyncio.timeout(60):
        while not await backend.health_check():
            await asyncio.sleep(0.05)
        while (await backend.queue_stats("q")).depth:
            for message in await backend.receive_messages("q", 300, 60.0):
                await backend.ack_message("q", message.message_id)
    await backend.create_queue("q")
    info = await backend._link.api(f"STREAM.INFO.{rig.prefix}--q")
    assert info is not None
    assert info["state"]["messages"] == 0
    await backend.close()


async def _settle_until_lost(backend: NatsBackend) -> None:
    with suppress(MessagingError):
        while True:
            for message in await backend.receive_messages("q", 50, 60.0):
                await backend.ack_message("q", message.message_id)


async def test_creating_a_queue_again_takes_over_the_settings(rig: Rig) -> None:
    await rig.backend.create_queue("q")
    changed = rig.another(ack_wait_seconds=7)
    await changed.open()
    await changed.create_queue("q")
    await changed.close()
    client = await nats.connect(rig.url)
    info = await client.jetstream().consumer_info(f"{rig.prefix}--q", "tasker")
    await client.close()
    assert info.config.ack_wait == 7


async def test_a_server_that_is_not_there_is_named_without_the_password() -> None:
    url = f"nats://someone:secret@127.0.0.1:{brokers.free_port()}"
    backend = create({"url": url, "connection_timeout_seconds": 0.2})
    with pytest.raises(BackendUnavailable, match=r"NATS at 127\.0\.0\.1:\d+ cannot be made") as caught:
        await backend.open()
    assert "secret" not in str(caught.value) + str(caught.value.hint)
    await backend.close()


@pytest.mark.parametrize("password", ["hunter2/x", "hunter2?x", "hunter2#x", "1234/hunter2", "/hunter2", "hunter[2"])
def test_a_url_with_a_raw_character_in_its_password_is_refused_without_it(password: str) -> None:
    with pytest.raises(MessagingError, match="cannot be parsed") as caught:
        create({"url": f"nats://other:4222,u:{password}@localhost"})
    assert "percent-encode" in str(caught.value.hint)
    assert not any(part in repr(caught.value) for part in ("hunter", "1234"))


async def test_addresses_that_the_client_refuses_before_it_connects_are_an_error_of_ours() -> None:
    backend = create({"url": "nats://127.0.0.1:1,ws://127.0.0.1:2"})
    with pytest.raises(BackendUnavailable, match="mixing"):
        await backend.open()


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("tls://one?ca=/a.pem", "no setting 'ca' in its URL"),
        ("tls://one?cafile=", "cafile without a file"),
        ("tls://one?cafile=/a.pem,tls://two?cafile=/b.pem", "two files as cafile"),
        ("tls://one?keyfile=/a.pem", "a key without a certificate"),
    ],
)
def test_what_a_url_names_beside_files_of_certificates_is_refused(url: str, problem: str) -> None:
    with pytest.raises(MessagingError, match=problem) as caught:
        create({"url": url})
    assert "tls://host:4222?cafile=" in str(caught.value.hint)


async def test_a_certificate_that_cannot_be_read_is_named() -> None:
    backend = create({"url": "tls://127.0.0.1:1,tls://127.0.0.1:2?cafile=/nowhere/ca.pem"})
    with pytest.raises(MessagingError, match=r"cafile=/nowhere/ca\.pem.*No such file") as caught:
        await backend.open()
    assert not caught.value.retryable


async def test_a_backend_that_is_not_open_says_so() -> None:
    backend = create({})
    with pytest.raises(BackendUnavailable, match="is not open"):
        await backend.send_message("q", b"{}")
    assert await backend.health_check() is False


@pytest.mark.parametrize("settings", [{"urls": "nats://localhost"}, {"prefix": "a.b"}, {"prefix": "a-b"}])
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(MessagingError, match=r"no setting urls|prefix 'a"):
        create(settings)


def test_the_engines_database_is_passed_over() -> None:
    assert create({"channel": object()}).provider_name() == "nats"


def test_held_messages_are_bounded_and_the_oldest_gives_way() -> None:
    held = UnsettledMessages(limit=2)
    for message_id in (1, 2, 3):
        held.put(("q", message_id), Receipt("", 0.0, 0.0, 0))
    assert list(held.receipts) == [("q", 2), ("q", 3)]
