"""Many messages are acknowledged with few frames, and never one that somebody still works on."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from aiormq import Channel
from hypothesis import given
from hypothesis import strategies as st

from tasker.errors import BackendUnavailable
from tasker_rabbitmq import settling
from tasker_rabbitmq.link import PUBLISH
from tasker_rabbitmq.settling import Settled
from tests.contract.rabbitmq_rig import Rig, Unwritten
from tests.support.servers import brokers


@pytest_asyncio.fixture
async def rig() -> AsyncIterator[Rig]:
    rig = Rig(brokers.shared_url(brokers.RABBITMQ))
    await rig.backend.open()
    yield rig
    await rig.clean()


class Broker:
    """What a channel of the broker has delivered and not been told of; it refuses what it does not know."""

    def __init__(self) -> None:
        self.unsettled: set[int] = set()

    def take(self, tag: int, *, multiple: bool) -> set[int]:
        assert tag in self.unsettled, "the broker would close the channel"
        taken = {each for each in self.unsettled if each < tag or each == tag} if multiple else {tag}
        self.unsettled -= taken
        return taken


@given(st.data())
def test_whatever_is_acknowledged_together_nothing_else_is(data: st.DataObject) -> None:
    broker, settled, delivered = Broker(), Settled(), 0
    for _ in range(data.draw(st.integers(1, 12))):
        arrived = range(delivered + 1, delivered + 1 + data.draw(st.integers(0, 6)))
        broker.unsettled.update(arrived)
        delivered = arrived.stop - 1
        chosen = data.draw(st.sets(st.sampled_from(sorted(broker.unsettled)))) if broker.unsettled else set()
        if chosen and data.draw(st.booleans()):
            rejected = chosen.pop()
            broker.take(rejected, multiple=False)
            settled.settle((rejected,))
        for tag, together in [*settled.acknowledgements(chosen)]:
            assert broker.take(tag, multiple=len(together) > 1) == set(together)
            settled.settle(together)
        assert not broker.unsettled & chosen


def test_what_is_acknowledged_in_order_takes_one_frame() -> None:
    settled = Settled()
    settled.settle((2,))
    assert [*settled.acknowledgements([1, 3, 4])] == [(4, [1, 3, 4])]
    settled.settle([1, 3, 4])
    assert [*settled.acknowledgements([6, 5, 8])] == [(6, [5, 6]), (8, (8,))]


def test_what_is_remembered_behind_one_that_is_never_settled_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settling, "REMEMBERED", 10)
    settled = Settled()
    for tag in range(2, 100):
        assert [*settled.acknowledgements([tag])] == [(tag, (tag,))]
        settled.settle((tag,))
    settled.settle((1,))
    assert [*settled.acknowledgements([98, 99])] == [(98, (98,)), (99, (99,))]


async def test_messages_are_acknowledged_together_and_one_that_is_held_comes_again(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    acknowledged = list[tuple[int, bool]]()
    basic_ack = Channel.basic_ack

    async def counted(channel: Channel, tag: int, multiple: bool = False, wait: bool = True) -> None:
        acknowledged.append((tag, multiple))
        await basic_ack(channel, tag, multiple, wait)

    monkeypatch.setattr(Channel, "basic_ack", counted)
    await rig.backend.create_queue("q")
    await rig.backend.send_messages("q", [b"%d" % n for n in range(9)])
    received: list[Any] = []
    while len(received) < 9:
        received += await rig.backend.receive_messages("q", 9, 3600)
    held = received.pop(5)

    assert await rig.backend.ack_messages("q", [message.message_id for message in received]) == [True] * 8
    await rig.backend.close()

    assert acknowledged[0][1], "those before the one that is held, in one frame"
    assert len(acknowledged) == 4
    other = rig.another()
    await other.open()
    again: list[Any] = []
    while not again:
        again = await other.receive_messages("q", 9, 3600)
    assert [message.payload for message in again] == [held.payload]
    await other.close()


async def test_a_burst_of_messages_arrives_in_order_with_its_large_ones_whole(rig: Rig) -> None:
    payloads = [b"%d" % n * (1 if n % 5 else 300_000) for n in range(12)] + [b""]
    await rig.backend.create_queue("q")
    await rig.backend.send_messages("q", payloads)

    received: list[Any] = []
    while len(received) < len(payloads):
        received += await rig.backend.receive_messages("q", 20, 3600)

    assert [message.payload for message in received] == payloads


async def test_a_burst_that_was_never_written_takes_no_number_of_the_next_one(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The broker numbers what it has seen, and confirms by these numbers."""
    await rig.backend.create_queue("q")
    await rig.backend.send_message("q", b"first")
    with monkeypatch.context() as patch:
        patch.setattr(await rig.backend._link.channel(PUBLISH), "write_queue", Unwritten())
        with pytest.raises(BackendUnavailable):
            await rig.backend.send_messages("q", [b"never", b"written"])

    await rig.backend.send_messages("q", [b"second", b"third"])

    received: list[Any] = []
    while len(received) < 3:
        received += await rig.backend.receive_messages("q", 9, 3600)
    assert [message.payload for message in received] == [b"first", b"second", b"third"]
