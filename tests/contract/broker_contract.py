"""The conformance suite on a broker: what is common to all, whose backends stand under a prefix of their own."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tasker.messaging.port import Backend
from tasker.testing.messaging_contract import MessagingContract
from tests.support.servers import brokers


class BrokerContract(MessagingContract):
    """What is the same for each broker. The module's fixtures are `rig` and `private_broker`."""

    @pytest.fixture
    def backend(self, rig: Any, request: pytest.FixtureRequest) -> Backend:
        self.rig, self.request = rig, request
        made: Backend = rig.backend
        return made

    async def advance(self, backend: Backend, seconds: float) -> None:
        await self.rig.advance(seconds)

    async def another(self, backend: Backend) -> Backend:
        rival: Backend = self.rig.another()
        await rival.open()
        return rival

    async def restart(self, backend: Backend) -> None:
        server: brokers.PrivateServer = self.request.getfixturevalue("private_broker")
        await asyncio.to_thread(server.restart)

    async def test_prefixes_keep_queues_of_one_name_apart(self, rig: Any) -> None:
        other = type(rig)(rig.url)
        await other.backend.open()
        for one, payload in ((rig.backend, b"mine"), (other.backend, b"theirs")):
            await one.create_queue("q")
            await one.send_message("q", payload)
        (message,) = await other.backend.receive_messages("q", 10, 30)
        assert message.payload == b"theirs"
        assert await other.backend.list_queues() == ["q"]
        await other.clean()
