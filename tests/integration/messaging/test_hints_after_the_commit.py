"""Backends that are not transactional: hints are sent after the commit, and what is lost there is found."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any
from uuid import uuid4

import pytest
import pytest_asyncio

import tasker
from tasker.db.connection import Connection
from tasker.engine.calls import Engine
from tasker.engine.write_listeners import WriteListeners
from tasker.errors import DatabaseUnavailable, InvalidQueueName, MessagingError
from tasker.messaging import MessagingService
from tasker.messaging.port import QueueStats
from tasker.plugins.hook_arguments import WriteCommitted
from tasker.services.submission.submit import Submission, SubmissionResult
from tasker.template import compile_text
from tasker_memory import create
from tests.support.servers.brokers import free_port

(PLAN,) = compile_text(
    """
name: pair
namespace_name: hinted
version: "1.0.0"
steps:
  - {name: left, handler: any.left}
  - {name: right, handler: any.right}
"""
).plans
QUEUE = "worker_hinted_queue"
CLAIM = {
    "worker": "5b3f1d1e-7f5e-4d38-9f0d-00000000000a",
    "slots": 10,
    "namespaces": ["hinted"],
    "namespace_ids": [],
    "unserved": [],
    "window": 2000,
}
Disturbance = Callable[[], Awaitable[Any]]


@pytest_asyncio.fixture
async def app(database_url: str) -> AsyncIterator[tasker.App]:
    """Submits, and works on nothing."""
    async with tasker.App(database_url, backend="memory", work=False) as running:
        yield running


def engine_of(app: tasker.App) -> Engine:
    return app._engine


async def steps_of(engine: Engine) -> list[str]:
    rows = await engine.connection.execute("select workflow_step_uuid::text from tasker.workflow_steps order by 1")
    return [row[0] for row in rows]


async def test_a_waking_that_fails_does_not_hide_that_the_task_exists(
    app: tasker.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_of(app)
    silent = replace(engine.messaging.capabilities, push=False)
    monkeypatch.setattr(MessagingService, "capabilities", silent)
    await engine.connection.execute("drop function tasker.wake_v1")

    (submitted,) = await app.submit_many(PLAN, [Submission({})])

    assert isinstance(submitted, SubmissionResult)
    assert len(await steps_of(engine)) == 2


async def test_a_send_that_fails_does_not_hide_that_the_task_exists(
    app: tasker.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_of(app)

    async def refuse(queue: str, payloads: Sequence[bytes]) -> list[int]:
        raise MessagingError("the broker is away")

    heard: list[WriteCommitted] = []
    engine.listeners = WriteListeners(on_written=heard.append)
    with monkeypatch.context() as away:
        away.setattr(engine.messaging.backend, "send_messages", refuse)
        submitted = await app.submit(PLAN)
    assert (await app.tasks.state(submitted.task_uuid))[0] == "steps_in_process"
    steps = await steps_of(engine)
    assert await engine.missing_hints("hinted", steps) == steps
    assert (await engine.call("wakeups_sent", {"steps": steps}))["sent"] == {"hinted": 2}
    assert [(each.function, each.unsent) for each in heard] == [("submit", 2), ("wakeups_sent", 0)]
    assert await engine.missing_hints("hinted", steps) == []


async def test_no_more_hints_are_missing_than_the_queue_is_short_of(app: tasker.App) -> None:
    engine = engine_of(app)
    await app.submit(PLAN)
    steps = await steps_of(engine)
    assert await engine.missing_hints("hinted", steps) == []
    (message, _) = await engine.messaging.receive_messages(QUEUE, 10, 30)
    assert await engine.missing_hints("hinted", steps) == []  # received is not lost
    await engine.messaging.ack_message(QUEUE, message.message_id)
    assert len(await engine.missing_hints("hinted", steps)) == 1


async def test_hints_whose_claim_failed_are_given_back_at_once() -> None:
    messaging = MessagingService(create({}))
    hint = {
        "namespace": "hinted",
        "step": "5b3f1d1e-7f5e-4d38-9f0d-000000000001",
        "task": "5b3f1d1e-7f5e-4d38-9f0d-000000000000",
    }
    await messaging.send_hints([hint])
    engine = Engine(Connection(f"postgresql://postgres@127.0.0.1:{free_port()}/none"), messaging)
    with pytest.raises(DatabaseUnavailable):
        await engine.claim({"namespaces": ["hinted"], "slots": 10})
    assert len(await messaging.receive_step_messages("hinted", 10, 30)) == 1


async def test_a_message_that_is_no_hint_is_set_aside_and_the_others_are_claimed(app: tasker.App) -> None:
    engine = engine_of(app)
    await app.submit(PLAN)
    await engine.messaging.send_message(QUEUE, b"no hint")
    answer = await engine.claim(CLAIM)
    assert (answer.popped, len(answer.claims)) == (3, 2)
    assert (await engine.messaging.queue_stats(QUEUE)).depth == 0
    ((reason,),) = await engine.connection.execute("select reason from tasker.poison_messages")
    assert "not JSON" in reason


async def test_namespaces_take_turns_at_being_first(app: tasker.App) -> None:
    messaging = MessagingService(create({}))
    for namespace in ("one", "two"):
        await messaging.backend.create_queue(f"worker_{namespace}_queue")
        await messaging.backend.send_messages(f"worker_{namespace}_queue", [b"x"] * 5)
    engine = Engine(Connection(app.database_url), messaging)
    firsts = [(await engine.receive(["one", "two"], 1))[0].queue for _ in range(4)]
    await engine.connection.close()
    assert sorted(firsts) == ["worker_one_queue"] * 2 + ["worker_two_queue"] * 2


async def test_hints_for_which_there_is_no_slot_left_are_given_back(app: tasker.App) -> None:
    engine = engine_of(app)
    await app.submit(PLAN)
    hints = await engine.receive(["hinted"], 10)
    args = {"worker": "5b3f1d1e-7f5e-4d38-9f0d-00000000000a", "slots": 1, "namespace_ids": [], "unserved": []}
    answer = await engine.claim_received(args, hints)
    assert (answer.popped, len(answer.claims)) == (1, 1)
    assert len(await engine.receive(["hinted"], 10)) == 1


async def test_a_plan_whose_namespace_can_have_no_queue_is_refused_before_anything_is_created(app: tasker.App) -> None:
    """An older release compiled such plans; their tasks would wait for hints that can never be sent."""
    with pytest.raises(InvalidQueueName, match="'orchestration_x' begins with 'orchestration', which is reserved"):
        await app.submit(replace(PLAN, namespace="orchestration_x"))
    assert await engine_of(app).connection.execute("select from tasker.tasks") == []


async def nothing() -> None:
    """Happens most of the time."""


async def submit_another(app: tasker.App) -> None:
    await app.submit(PLAN, {"another": str(uuid4())})


async def disturb(app: tasker.App, monkeypatch: pytest.MonkeyPatch, before: Disturbance, after: Disturbance) -> None:
    """Have something happen right before and right after each look at the depth of a queue."""
    look = app._engine.messaging.queue_stats

    async def looked(queue: str) -> QueueStats:
        await before()
        stats = await look(queue)
        await after()
        return stats

    monkeypatch.setattr(app._engine.messaging, "queue_stats", looked)


async def test_steps_that_are_enqueued_while_hints_are_counted_make_none_look_lost(
    app: tasker.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    await app.submit(PLAN)
    steps = await steps_of(engine_of(app))
    await disturb(app, monkeypatch, nothing, partial(submit_another, app))
    assert await engine_of(app).missing_hints("hinted", steps) == []


async def test_steps_that_are_claimed_while_hints_are_counted_make_none_look_lost(
    app: tasker.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_of(app)
    await app.submit(PLAN)
    steps = await steps_of(engine)
    looks = count()

    async def claim() -> None:
        if next(looks) == 1:  # between the two looks that the first submission causes
            await engine.claim(CLAIM)

    async def submit() -> None:
        if next(looks) == 1:
            await submit_another(app)

    await disturb(app, monkeypatch, claim, submit)
    assert await engine.missing_hints("hinted", steps) == []


async def test_a_hint_that_is_lost_is_missed_while_others_come_and_go(
    app: tasker.App, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = engine_of(app)
    await app.submit(PLAN)
    steps = await steps_of(engine)
    (message, _) = await engine.messaging.receive_messages(QUEUE, 10, 0)
    await engine.messaging.ack_message(QUEUE, message.message_id)
    await disturb(app, monkeypatch, nothing, partial(submit_another, app))
    assert len(await engine.missing_hints("hinted", steps)) == 1
