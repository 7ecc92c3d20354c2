"""An alarm of the broker (memory, disk): it takes no messages, and gives those that it has. Or it answers nothing."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio

from tasker.errors import BackendUnavailable
from tasker_rabbitmq import sending
from tasker_rabbitmq.link import REPLY_SECONDS
from tests.contract.rabbitmq_rig import Rig, alarm
from tests.support.servers import brokers

pytestmark = pytest.mark.servers


@pytest.fixture(scope="module")
def broker() -> Iterator[brokers.PrivateServer]:
    with brokers.private_server(brokers.RABBITMQ) as server:
        yield server


@pytest_asyncio.fixture
async def rig(broker: brokers.PrivateServer) -> AsyncIterator[Rig]:
    rig = Rig(broker.url)
    await rig.backend.open()
    yield rig
    await rig.clean()


async def test_who_has_tried_to_send_goes_on_receiving_and_acknowledging(
    rig: Rig, broker: brokers.PrivateServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the queues that are the reason of the alarm would never become shorter."""
    monkeypatch.setattr(sending, "REPLY_SECONDS", 1.0)
    backend = rig.backend
    await backend.create_queue("q")
    await backend.send_messages("q", [b"0", b"1", b"2"])
    (first,) = await backend.receive_messages("q", 1, 30)

    with alarm(broker):
        with pytest.raises(BackendUnavailable, match="gave no answer in time"):
            await backend.send_message("q", b"lost or not")
        assert await backend.ack_message("q", first.message_id)
        (second,) = await backend.receive_messages("q", 1, 30)
        assert second.payload == b"1"
        assert await backend.ack_message("q", second.message_id)
        with pytest.raises(BackendUnavailable, match="takes no messages: the broker has an alarm"):
            await backend.send_message("q", b"not even tried")

    async with asyncio.timeout(60):
        while True:
            try:
                await backend.send_message("q", b"3")
                break
            except BackendUnavailable:
                await asyncio.sleep(0.05)
    await backend.close()
    rival = rig.another()
    await rival.open()
    left = [message.payload for message in await rival.receive_messages("q", 10, 30)]
    await rival.close()
    await backend.open()
    assert [payload for payload in left if payload != b"lost or not"] == [b"2", b"3"]


async def test_the_end_of_a_subscription_does_not_wait_for_a_broker_that_gives_no_answer(
    rig: Rig, broker: brokers.PrivateServer
) -> None:
    """A process that stops would tell of a service that hangs, and stop later, with each queue it listens to."""
    queues = [f"q{number}" for number in range(20)]
    for queue in queues:
        await rig.backend.create_queue(queue)
    news = rig.backend.subscribe_many(queues)
    await anext(news)
    os.killpg(broker.pid, signal.SIGSTOP)
    try:
        async with asyncio.timeout(REPLY_SECONDS / 2):
            await news.aclose()
    finally:
        os.killpg(broker.pid, signal.SIGCONT)


async def test_what_was_sent_ahead_goes_back_uncounted_where_the_broker_answers_late(
    rig: Rig, broker: brokers.PrivateServer
) -> None:
    backend = rig.backend
    await backend.create_queue("ahead")
    news = backend.subscribe_many(["ahead"])
    await anext(news)
    await backend.send_message("ahead", b"0")
    await anext(news)  # it is here, and nobody has received it
    os.killpg(broker.pid, signal.SIGSTOP)
    try:
        await news.aclose()
        closing = asyncio.create_task(backend.close())
        await asyncio.sleep(0)
    finally:
        os.killpg(broker.pid, signal.SIGCONT)
    await closing
    rival = rig.another()
    await rival.open()
    (message,) = await rival.receive_messages("ahead", 1, 30)
    await rival.close()
    await backend.open()
    assert message.read_count == 1
