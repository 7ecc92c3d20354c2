"""Two fleets on one broker by mistake: what points to a step of another database is kept, and said (rule 6)."""

from __future__ import annotations

import json
import logging
import random
from collections.abc import AsyncIterator
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

from tasker.db.channel import DatabaseChannel
from tasker.db.connection import Connection
from tasker.engine.calls import Engine
from tasker.engine.exchange import CompletingWorker
from tasker.engine.plans import PlanStore
from tasker.errors import DatabaseUnavailable
from tasker.messaging import MessagingService
from tasker.messaging.backends import load_backend
from tasker.orchestration.parked_results import ParkedResultConsumer
from tasker.orchestration.results import ResultProcessor
from tests.integration.messaging.test_hints_after_the_commit import PLAN, QUEUE
from tests.support.servers import brokers

STRANGER = {
    "namespace": "hinted",
    "step": "5b3f1d1e-7f5e-4d38-9f0d-000000000001",
    "task": "5b3f1d1e-7f5e-4d38-9f0d-000000000000",
}
POISON = (
    "select queue_name, coalesce((message->>'raw')::jsonb, message)->>'step_uuid', reason from tasker.poison_messages"
)


@pytest_asyncio.fixture(params=brokers.ENGINE_BACKENDS)
async def engine(request: pytest.FixtureRequest, database_url: str) -> AsyncIterator[Engine]:
    """An engine on each backend, and a task of two steps that nobody works on."""
    settings = brokers.engine_settings(request.param)
    if request.param == "pgmq":
        settings = {"channel": DatabaseChannel(database_url)}
    messaging = MessagingService(load_backend(request.param, settings))
    connection = Connection(database_url)
    await messaging.open()
    plan = await PlanStore(connection).register(PLAN)
    yield await submitted(Engine(connection, messaging), plan.template_id)
    await connection.close()
    await brokers.remove_queues(messaging, settings)
    await messaging.close()


async def submitted(engine: Engine, template: str) -> Engine:
    task = str(uuid4())[:-6] + "000000"
    await engine.call("submit", {"template": template, "tasks": [{"id": task, "identity": task}]})
    return engine


def claim_args(slots: int = 10) -> dict[str, Any]:
    return {
        "worker": "5b3f1d1e-7f5e-4d38-9f0d-00000000000a",
        "slots": slots,
        "namespaces": ["hinted"],
        "namespace_ids": [],
        "unserved": [],
        "window": 2000,
    }


async def test_a_hint_to_a_step_of_another_fleet_is_kept_and_said_and_the_others_are_claimed(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    await engine.messaging.send_hints([STRANGER])

    with caplog.at_level(logging.WARNING, "tasker.engine"):
        answer = await engine.claim(claim_args())

    assert (answer.popped, len(answer.claims)) == (3, 2)
    assert await engine.connection.execute(POISON) == [(QUEUE, STRANGER["step"], "unknown step")]
    (line,) = caplog.messages
    assert line.startswith("message_of_unknown_step")
    assert STRANGER["step"] in line
    assert "hinted" in line
    assert (await engine.claim(claim_args())).popped == 0


async def test_a_result_message_of_another_fleet_is_kept_and_said(
    engine: Engine, caplog: pytest.LogCaptureFixture
) -> None:
    await engine.messaging.ensure_orchestration_queues()
    await engine.messaging.send_step_results([{**STRANGER, "token": 1}])
    parked = ParkedResultConsumer(engine, ResultProcessor(engine, random.Random(1)), PlanStore(engine.connection))

    with caplog.at_level(logging.WARNING):
        count = await parked.receive(CompletingWorker(claim_args()["worker"]), 10)

    assert count == 1
    queue = engine.messaging.names.step_results
    ((kept_in, reason, message),) = await engine.connection.execute(
        "select queue_name, reason, message->>'raw' from tasker.poison_messages"
    )
    assert (kept_in, reason, json.loads(message)["step"]) == (queue, "unknown step", STRANGER["step"])
    assert [line.split()[0] for line in caplog.messages] == ["message_of_unknown_step"]
    assert (await engine.messaging.queue_stats(queue)).depth == 0


async def test_a_hint_that_cannot_be_set_aside_comes_again(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The claim is committed already: its steps must not be lost with the message."""
    connection = Connection(database_url)
    engine = Engine(connection, MessagingService(load_backend("memory", {})))
    await submitted(engine, (await PlanStore(connection).register(PLAN)).template_id)
    await engine.messaging.send_hints([STRANGER])

    async def away(*_: object) -> None:
        raise DatabaseUnavailable("the connection is gone")

    with monkeypatch.context() as patch:
        patch.setattr(engine, "quarantine_message", away)
        assert len((await engine.claim(claim_args())).claims) == 2

    assert (await engine.claim(claim_args())).popped == 1
    assert [step for _, step, _ in await connection.execute(POISON)] == [STRANGER["step"]]
    await connection.close()
