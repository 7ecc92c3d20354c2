from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from uuid import uuid4

import nats
import pytest
import pytest_asyncio

from tasker.contracts.messaging import Available, Backend
from tasker.errors import BackendUnavailable, MessagingError
from tasker.testing.messaging_contract import MessagingContract
from tasker_nats import NatsBackend, create
from tasker_nats.backend import FREE_RETURNS
from tasker_nats.held import HeldMessages, Receipt
from tasker_nats.link import Link
from tests.support import brokers


class ShiftedClock:
    """The machine's clock, ahead by what a test sets."""

    seconds = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self.seconds

    def now(self) -> datetime:
        return datetime.now(UTC) + timedelta(seconds=self.seconds)


@pytest.fixture(scope="module")
def private_broker() -> Iterator[brokers.PrivateServer]:
    with brokers.private_server(brokers.NATS) as server:
        yield server


class Rig:
    """A backend under a prefix of its own, and its clock."""

    def __init__(self, url: str) -> None:
        self.url, self.prefix, self.clock = url, f"tasker_test_{uuid4().hex[:8]}", ShiftedClock()
        self.backend = self.another()
        self.put_off: list[tuple[float, str, Link]] = []

    def another(self, **settings: object) -> NatsBackend:
        backend = create({"url": self.url, "prefix": self.prefix, "clock": self.clock, **settings})
        link, confirm = backend._link, backend._link.confirm

        async def noted(reply: str, verdict: bytes) -> bool:
            done = await confirm(reply, verdict)
            if verdict.startswith(b"-NAK {"):
                due = self.clock.monotonic() + json.loads(verdict.removeprefix(b"-NAK "))["delay"] / 1e9
                self.put_off.append((due, reply, link))
            return done

        link.confirm = noted  # type: ignore[method-assign]
        return backend

    async def advance(self, seconds: float) -> None:
        """Set the clock ahead, and end the server's delays that would be over by then."""
        self.clock.seconds += seconds
        now = self.clock.monotonic()
        for _, reply, link in [one for one in self.put_off if one[0] <= now]:
            await link.client.request(reply, b"-NAK")
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
