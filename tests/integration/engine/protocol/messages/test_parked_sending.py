"""Parked results where messages can be received and not sent: nothing waits for long, and nothing is worn by it."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

import pytest

from tasker.db.connection import Connection
from tasker.engine.calls import Engine
from tasker.engine.fleet_rules import FleetRules
from tasker.engine.plans import PlanStore
from tasker.errors import BackendUnavailable, MessagingError
from tasker.messaging.backends import load_backend
from tasker.messaging.service import MessagingService
from tasker.orchestration import results
from tasker.orchestration.parked_results import ParkedResultConsumer
from tasker.orchestration.results import ResultProcessor
from tests.contract.rabbitmq_rig import alarm
from tests.integration.engine.protocol.conftest import result_of
from tests.integration.engine.protocol.messages.test_parked_batches import Queued, parked_tasks, queued, waiting
from tests.integration.engine.protocol.messages.test_parked_locks import kept
from tests.support.engine_fixture import Lab
from tests.support.servers import brokers

__all__ = ["queued"]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for long."""
    monkeypatch.setattr(results, "LOCK_MS", 50)
    monkeypatch.setattr(results, "PASSING_MS", 50)


async def takes_nothing(*_: object) -> None:
    raise BackendUnavailable("the broker takes nothing")


async def test_a_message_that_cannot_be_sent_again_comes_again_at_once(
    queued: Queued, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = queued.lab
    held, free = parked_tasks(queued, 2)
    for claim in (held, free):
        await queued.park(result_of(lab.chain(1), claim))

    with kept(lab, held["step"]), monkeypatch.context() as patch:
        patch.setattr(queued.engine.messaging.backend, "send_message_with_delay", takes_nothing)
        with pytest.raises(MessagingError):
            await queued.receive()
    assert (lab.task(free["task"]).state, await waiting(queued)) == ("complete", 1)

    assert await queued.receive() == 1
    assert lab.task(held["task"]).state == "complete"


async def test_a_step_is_not_worn_by_looks_after_which_nothing_can_be_sent(
    queued: Queued, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the end it has no message. A sweep finds it."""
    lab = queued.lab
    (claim,) = parked_tasks(queued, 1)
    await queued.park(result_of(lab.chain(1), claim))

    with kept(lab, claim["step"]), monkeypatch.context() as patch:
        for name in ("send_message_with_delay", "send_messages"):
            patch.setattr(queued.engine.messaging.backend, name, takes_nothing)
        for _ in range(5):
            with pytest.raises(MessagingError):
                await queued.receive()
            queued.due("0 seconds")
        while await queued.receive():
            pass
    assert lab.task(claim["task"]).state == "steps_in_process"
    assert await waiting(queued) == 0

    assert await queued.sweep() == {"result_message_lost": 1}
    assert lab.task(claim["task"]).state == "complete"


async def test_a_queue_that_somebody_removes_is_made_again_by_who_sends_and_by_who_receives(queued: Queued) -> None:
    """What could not be announced is found by a sweep."""
    lab, messaging = queued.lab, queued.engine.messaging
    first, second = parked_tasks(queued, 2)

    await messaging.delete_queue(messaging.names.step_results)
    with pytest.raises(MessagingError):
        await queued.receive()
    assert await queued.receive() == 0
    await messaging.delete_queue(messaging.names.step_results)
    await queued.park(result_of(lab.chain(1), first))
    await queued.park(result_of(lab.chain(1), second))
    assert await queued.receive() == 1

    assert await queued.sweep() == {"result_message_lost": 1}
    assert {lab.task(claim["task"]).state for claim in (first, second)} == {"complete"}


# with a broker


@pytest.fixture(scope="module")
def broker() -> Iterator[brokers.PrivateServer]:
    with brokers.private_server(brokers.RABBITMQ) as server:
        yield server


@pytest.fixture
async def brokered(queued: Queued, broker: brokers.PrivateServer) -> AsyncIterator[Queued]:
    """As `queued`, with its messages on RabbitMQ."""
    messaging = MessagingService(load_backend("rabbitmq", {"url": broker.url, "prefix": f"{queued.lab.namespace}."}))
    await messaging.open()
    await messaging.ensure_orchestration_queues()
    connection = Connection(queued.lab.url)
    engine = Engine(connection, messaging, FleetRules(hidden_seconds=36_000))
    parked = ParkedResultConsumer(engine, ResultProcessor(engine, random.Random(1)), PlanStore(connection))
    yield replace(queued, engine=engine, results=parked)
    await messaging.delete_queue(messaging.names.step_results)
    await messaging.close()
    await connection.close()


@contextmanager
def forbidden(broker: brokers.PrivateServer) -> Iterator[None]:
    """Somebody has taken the right to write. The broker closes each channel on which it is tried."""
    user, everything = '<<"guest">>, <<"/">>, <<".*">>', '<<".*">>, <<"tests">>'
    broker.evaluate(f'rabbit_auth_backend_internal:set_permissions({user}, <<"^$">>, {everything}).')
    try:
        yield
    finally:
        broker.evaluate(f'rabbit_auth_backend_internal:set_permissions({user}, <<".*">>, {everything}).')


async def look(queued: Queued) -> bool:
    """False where it failed over a message."""
    try:
        while await queued.receive():
            pass
    except MessagingError:
        return False
    return True


@pytest.mark.servers
@pytest.mark.parametrize("trouble", [alarm, forbidden])
async def test_where_the_broker_gives_and_does_not_take_no_result_is_hidden(
    brokered: Queued,
    broker: brokers.PrivateServer,
    monkeypatch: pytest.MonkeyPatch,
    trouble: Callable[[brokers.PrivateServer], AbstractContextManager[None]],
) -> None:
    monkeypatch.setattr("tasker_rabbitmq.sending.REPLY_SECONDS", 1.0)
    lab: Lab = brokered.lab
    held, *free = parked_tasks(brokered, 4)
    for claim in (held, *free):
        await brokered.park(result_of(lab.chain(1), claim))

    with trouble(broker):
        with kept(lab, held["step"]):
            assert not await look(brokered)
            assert {lab.task(claim["task"]).state for claim in free} == {"complete"}
        async with asyncio.timeout(60):
            while lab.task(held["task"]).state != "complete":
                await look(brokered)
