from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio
import redis.asyncio

from tasker.contracts.messaging import Available, Backend, QueueStats
from tasker.errors import BackendUnavailable, MessagingError
from tasker.testing.messaging_contract import MessagingContract
from tasker_redis import RedisBackend, create
from tasker_redis.held import HeldMessages, Receipt
from tests.support import brokers

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
        return QueueStats(stats.queue, stats.depth, age, stats.consumers)


class TestRedis(MessagingContract):
    @pytest.fixture
    def backend(self, rig: Rig, request: pytest.FixtureRequest) -> Backend:
        self.rig, self.request = rig, request
        rig.backend.__class__ = Aged
        return rig.backend

    async def advance(self, backend: Backend, seconds: float) -> None:
        assert isinstance(backend, Aged)
        backend.seconds += seconds
        await self.rig.advance(seconds)

    async def restart(self, backend: Backend) -> None:
        server: brokers.PrivateServer = self.request.getfixturevalue("private_broker")
        await asyncio.to_thread(server.restart)
