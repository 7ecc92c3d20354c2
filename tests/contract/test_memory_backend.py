from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing

import pytest
import pytest_asyncio

from tasker.errors import MessagingError
from tasker.messaging.port import Backend, MessageAvailable
from tasker.testing.messaging_contract import MessagingContract
from tasker_memory import MemoryBackend, create
from tasker_memory.backend import QueueFull


class HandClock:
    def __init__(self) -> None:
        self.seconds = 1000.0

    def monotonic(self) -> float:
        return self.seconds


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


class TestMemory(MessagingContract):
    @pytest_asyncio.fixture
    async def backend(self, clock: HandClock) -> AsyncIterator[Backend]:
        self.clock = clock
        backend = create({"clock": clock})
        await backend.open()
        yield backend
        await backend.close()

    async def advance(self, backend: Backend, seconds: float) -> None:
        self.clock.seconds += seconds

    async def another(self, backend: Backend) -> Backend:
        pytest.skip("memory is one process: nobody else has its messages, and they end with it")

    async def restart(self, backend: Backend) -> None:
        pytest.skip("memory has no server")


@pytest.fixture
def small(clock: HandClock) -> MemoryBackend:
    return create({"clock": clock, "max_depth": 3})


async def test_a_full_queue_refuses_the_whole_batch_and_says_so(small: MemoryBackend) -> None:
    await small.create_queue("q")
    await small.send_messages("q", [b"1", b"2"])
    with pytest.raises(QueueFull, match="holds 2 of 3 messages, no room for 2"):
        await small.send_messages("q", [b"3", b"4"])
    assert (await small.queue_stats("q")).depth == 2


async def test_a_full_queue_takes_messages_again_after_an_acknowledgement(small: MemoryBackend) -> None:
    await small.create_queue("q")
    await small.send_messages("q", [b"1", b"2", b"3"])
    (message,) = await small.receive_messages("q", 1, 30)
    await small.ack_message("q", message.message_id)
    await small.send_message("q", b"4")
    assert (await small.queue_stats("q")).depth == 3


async def test_subscribers_are_counted_as_consumers(small: MemoryBackend) -> None:
    await small.create_queue("q")
    async with aclosing(small.subscribe_many(["q"])) as notifications:
        await anext(notifications)
        assert (await small.queue_stats("q")).consumers == 1
    assert (await small.queue_stats("q")).consumers == 0


async def test_a_delayed_message_is_announced_when_it_is_due() -> None:
    backend = create({})
    await backend.create_queue("q")
    async with aclosing(backend.subscribe_many(["q"])) as notifications:
        await anext(notifications)
        await backend.send_message_with_delay("q", b"later", 0.02)
        assert await asyncio.wait_for(anext(notifications), 60) == MessageAvailable("q")
    (message,) = await backend.receive_messages("q", 1, 30)
    assert message.payload == b"later"


async def test_subscribing_to_a_missing_queue_is_an_error(small: MemoryBackend) -> None:
    with pytest.raises(MessagingError, match="'q' does not exist"):
        await anext(small.subscribe_many(["q"]))


@pytest.mark.parametrize("depth", [0, "many", True, None])
def test_a_depth_that_makes_no_sense_is_refused(depth: object) -> None:
    with pytest.raises(MessagingError, match="max_depth") as error:
        create({"max_depth": depth})
    assert not error.value.retryable
