"""Messages that point to parked results: what an orchestrator does with good and with bad ones (B-28, RT-49)."""

from __future__ import annotations

import json
import random
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest

from tasker.db.channel import DatabaseChannel
from tasker.db.connection import Connection
from tasker.errors import DatabaseError
from tasker.messaging.registry import load_backend
from tasker.messaging.service import MessagingService
from tasker.orchestration.parking import ParkedResults
from tasker.orchestration.results import Processor
from tasker.services.engine import Engine, Rules
from tasker.services.exchange import Caller
from tasker.services.plans import PlanStore
from tests.support.engine_fixture import Lab, ok

RULES = Rules(hidden_seconds=36_000)


@dataclass(frozen=True)
class Tray:
    """The queue of parked results, and who ends them."""

    lab: Lab
    messaging: MessagingService

    async def send(self, *payloads: Any) -> None:
        for payload in payloads:
            raw = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
            await self.messaging.send_message(self.messaging.names.step_results, raw)

    async def receive(self, url: str | None = None) -> int:
        connection = Connection(url or self.lab.url)
        engine = Engine(connection, self.messaging, RULES)
        results = ParkedResults(engine, Processor(engine, random.Random(1)), PlanStore(connection))
        try:
            return (await results.receive(Caller(self.lab.one.worker), 100))[0]
        finally:
            await connection.close()

    async def waiting(self) -> int:
        return (await self.messaging.queue_stats(self.messaging.names.step_results)).depth

    def parked(self) -> tuple[str, dict[str, Any]]:
        """A task whose only step is parked, and the message that points to it."""
        plan = self.lab.chain(1)
        task = self.lab.submit_one(plan)
        (claim,) = self.lab.one.claim()
        (message,) = self.lab.one.core("park", {"worker": self.lab.one.worker, "items": [ok(claim)]})["parked"]
        return task, message


@pytest.fixture
async def tray(lone_lab: Lab) -> AsyncIterator[Tray]:
    messaging = MessagingService(load_backend("pgmq", {"channel": DatabaseChannel(lone_lab.url)}))
    await messaging.open()
    await messaging.ensure_orchestration_queues()
    yield Tray(lone_lab, messaging)
    await messaging.close()


@pytest.mark.parametrize(
    "wrong", [b"\xff no json", b"[" * 100_000, [1], {"token": 1}, {"step": 7}, {"step": None}, {"step": "abc"}]
)
async def test_a_message_that_points_to_no_step_is_kept_with_the_reason_and_holds_nobody_up(
    tray: Tray, wrong: Any
) -> None:
    task, message = tray.parked()
    await tray.send(wrong, message)

    assert await tray.receive() == 2

    assert tray.lab.task(task).state == "complete"
    (kept,) = tray.lab.observer.rows("select queue_name, reason from tasker.poison_messages")
    assert kept.queue_name == tray.messaging.names.step_results
    assert "points to no parked step" in kept.reason
    assert await tray.waiting() == 0


async def test_pointers_wait_while_the_database_is_away(tray: Tray) -> None:
    task, message = tray.parked()
    await tray.send(message)

    with pytest.raises(DatabaseError):
        await tray.receive("postgresql://127.0.0.1:1/none")

    assert await tray.receive() == 1, "it was given back at once"
    assert tray.lab.task(task).state == "complete"
