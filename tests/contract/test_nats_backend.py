from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from datetime import datetime, timedelta
from uuid import uuid4

import nats
import pytest
import pytest_asyncio

from tasker.contracts.messaging import Available, Backend
from tasker.errors import BackendUnavailable, MessagingError
from tasker.testing.messaging_contract import MessagingContract
from tasker_nats import NatsBackend, create
from tasker_nats.held import HeldMessages, Receipt
from tests.support import brokers


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

    def __init__(self, url: str) -> None:
        self.url, self.prefix, self.seconds = url, f"tasker_test_{uuid4().hex[:8]}", 0.0
        self.put_off: list[tuple[float, str]] = []
        self.backend = self.another()

    def another(self, **settings: object) -> Shifted:
        made = create({"url": self.url, "prefix": self.prefix, **settings})
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
    """On the shared server; on one of our own where the test restarts it."""
    own = request.node.name.startswith("test_after_a_restart")
    url = request.getfixturevalue("private_broker").url if own else brokers.shared_url(brokers.NATS)
    rig = Rig(url)
    await rig.backend.open()
    yield rig
    await rig.clean()


class TestNats(MessagingContract):
    @pytest.fixture
    def backend(self, rig: Rig, request: pytest.FixtureRequest) -> Backend:
        self.rig, self.request = rig, request
        return rig.backend

    async def advance(self, backend: Backend, seconds: float) -> None:
        await self.rig.advance(seconds)

    async def restart(self, backend: Backend) -> None:
        server: brokers.PrivateServer = self.request.getfixturevalue("private_broker")
        await asyncio.to_thread(server.restart)
