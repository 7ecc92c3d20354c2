"""Tasks asked for by message, and tasks to be evaluated again."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from tasker.clock import Clock, new_task_uuid
from tasker.db.channel import DatabaseChannel
from tasker.db.connection import Connection
from tasker.engine.calls import Engine
from tasker.engine.exchange import CompletingWorker
from tasker.engine.fleet_rules import FleetRules
from tasker.engine.plans import PlanStore
from tasker.messaging.backends import load_backend
from tasker.messaging.service import MessagingService
from tasker.orchestration.finalization import FinalizationConsumer
from tasker.orchestration.task_requests import PUT_OFF_SECONDS, TaskRequestConsumer
from tasker.services.submission.admission import SubmissionAdmission
from tasker.services.submission.submit import Draft, DraftFactory
from tasker.settings.queues import DepthThresholds
from tasker.template.plan import Plan
from tests.support.engine_fixture import Lab

SHALLOW = DepthThresholds(critical_threshold=1, overflow_threshold=2)


@dataclass(frozen=True)
class Desk:
    """An orchestrator's inboxes, without its loops."""

    lab: Lab
    engine: Engine
    plans: PlanStore

    def requests(self, admission: SubmissionAdmission | None = None, clock: Clock | None = None) -> TaskRequestConsumer:
        drafts = DraftFactory(new_task_uuid, context_limit_bytes=10_000)
        return TaskRequestConsumer(self.engine, self.plans, drafts, clock or _Settable(), admission)

    async def receive(self, inbox: TaskRequestConsumer | None = None) -> int:
        return await (inbox or self.requests()).receive(CompletingWorker(self.lab.one.worker), 100)

    async def finalize(self) -> int:
        return await FinalizationConsumer(self.engine).receive(CompletingWorker(self.lab.one.worker), 100)

    async def send(self, *messages: Any) -> None:
        queue = self.engine.messaging.names.task_requests
        for message in messages:
            payload = message if isinstance(message, bytes) else json.dumps(message).encode()
            await self.engine.messaging.send_message(queue, payload)

    def tasks(self) -> list[str]:
        query = "select task_uuid from tasker.tasks where namespace_id = %s"
        return [str(row.task_uuid) for row in self.lab.observer.rows(query, self.lab.namespace_id)]

    def refused(self) -> list[str]:
        return [row.reason for row in self.lab.observer.rows("select reason from tasker.poison_messages order by id")]

    async def waiting(self) -> int:
        names = self.engine.messaging.names
        return (await self.engine.messaging.queue_stats(names.task_requests)).depth


def unreachable(desk: Desk) -> TaskRequestConsumer:
    """Return a consumer whose database refuses connections."""
    away = Connection("postgresql://127.0.0.1:1/none")
    return TaskRequestConsumer(
        Engine(away, desk.engine.messaging), PlanStore(away), DraftFactory(new_task_uuid), _Settable()
    )


@pytest.fixture
async def desk(lab: Lab) -> AsyncIterator[Desk]:
    connection = Connection(lab.url)
    messaging = MessagingService(load_backend("pgmq", {"channel": DatabaseChannel(lab.url)}))
    await messaging.open()
    await messaging.ensure_orchestration_queues()
    plans = PlanStore(connection)
    yield Desk(lab, Engine(connection, messaging, FleetRules(hidden_seconds=36_000)), plans)
    await messaging.close()
    await connection.close()


async def registered(desk: Desk, name: str = "chain") -> Plan:
    plan = desk.lab.chain(2, name=name)
    await desk.plans.register(plan)
    return plan


def asking(plan: Plan, **more: Any) -> dict[str, Any]:
    request = {"request_id": new_task_uuid(), "namespace": plan.namespace, "template": plan.name}
    return {**request, "context": {"n": new_task_uuid()}, **more}


async def test_requests_become_tasks_of_the_identifiers_that_were_announced(desk: Desk) -> None:
    plan, other = await registered(desk), await registered(desk, "other")
    messages = [
        asking(plan),
        asking(other, version=other.version),
        asking(plan, options={"priority": 7, "tags": ["a"]}),
    ]
    await desk.send(*messages)

    assert await desk.receive() == 3

    assert sorted(desk.tasks()) == sorted(message["request_id"] for message in messages)
    assert desk.lab.task(messages[2]["request_id"]).priority == 7
    assert await desk.waiting() == 0
    desk.lab.check()


async def test_a_request_that_comes_twice_is_one_task(desk: Desk) -> None:
    """In one batch, and again after its task has begun."""
    plan = await registered(desk)
    message = asking(plan)
    await desk.send(message, message)
    await desk.receive()
    await desk.send(message)
    await desk.receive()

    assert desk.tasks() == [message["request_id"]]
    assert (desk.refused(), await desk.waiting()) == ([], 0)


async def test_a_request_for_a_task_that_exists_names_that_task_in_the_log(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever asked knows an identifier that will never exist: in one batch with the first, and later."""
    plan = await registered(desk)
    correlation = "0199c1f4-8a52-7000-8000-00000000c0de"
    options = {"idempotency_key": "order-7", "correlation_id": correlation}
    first, second, third = (asking(plan, options=options, context={"n": 7}) for _ in range(3))
    await desk.send(first, second)
    with caplog.at_level("INFO", "tasker.orchestration"):
        await desk.receive()
        await desk.send(third)
        await desk.receive()

    (task,) = desk.tasks()
    other = ({first["request_id"], second["request_id"]} - {task}).pop()
    assert caplog.messages == [
        f"task_requested_again correlation_id={correlation} task_uuid={task} namespace={plan.namespace} "
        f"template={plan.name} request={request}"
        for request in (other, third["request_id"])
    ]
    assert (desk.refused(), await desk.waiting()) == ([], 0)


async def test_request_whose_key_names_a_task_with_another_input_is_refused(desk: Desk) -> None:
    plan = await registered(desk)
    key = {"idempotency_key": "order-8"}
    first, *others = (asking(plan, options=key, context={"n": n}) for n in (8, 8, 9))
    await desk.send(first, *others)
    await desk.receive()

    assert (desk.tasks(), await desk.waiting()) == ([first["request_id"]], 0)
    assert [("$.n: differs from the existing task" in reason) for reason in desk.refused()] == [True]


async def test_two_orchestrators_that_get_the_same_request_make_one_task(desk: Desk) -> None:
    plan = await registered(desk)
    message = asking(plan)
    await desk.send(message, message)
    connection = Connection(desk.lab.url)
    rival = Desk(desk.lab, Engine(connection, desk.engine.messaging), PlanStore(connection))

    each = [one.requests().receive(CompletingWorker(one.lab.one.worker), 1) for one in (desk, rival)]
    assert sorted(await asyncio.gather(*each)) == [1, 1]

    assert desk.tasks() == [message["request_id"]]
    await connection.close()


async def test_any_uuid_names_a_request_and_its_last_bits_are_not_kept(desk: Desk) -> None:
    plan = await registered(desk)
    await desk.send(asking(plan, request_id="6f1c7e52-94c1-4f6e-9c3e-a1b2c3d4e5f6"))
    await desk.receive()

    assert desk.tasks() == ["6f1c7e52-94c1-4f6e-9c3e-a1b2c3000000"]


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (b"\x00\xff no json", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        ([1], "expected a JSON object"),
        ({"request_id": "7"}, "request_id: expected a UUID, found '7'"),
        ({"namespace": "no\x00where"}, "namespace: expected a name"),
        ({"template": "nothing"}, "is registered"),
        ({"version": "9.9.9"}, "version 9.9.9 is registered"),
        ({"context": [1]}, "context: expected a JSON object"),
        ({"context": {"a": "x" * 20_000}}, "10,000 allowed"),
        ({"context": {"a": "\x00"}}, "$.a"),
        ({"context": {"a": "\ud800"}}, "$.a"),
        ({"options": {"priority": "hihg"}}, "priority: expected critical, high"),
        ({"options": {"priority": 10**12}}, "or a whole number from"),
        ({"options": {"reason": "\x00"}}, "reason: contains the NUL character"),
        ({"options": {"correlation_id": "x"}}, "correlation_id: expected a UUID"),
        ({"options": {"urgent": True}}, "unknown option 'urgent'"),
        ({"when": "now"}, "unknown key 'when'"),
    ],
)
async def test_a_request_that_cannot_be_met_is_kept_with_the_reason_and_holds_nobody_up(
    desk: Desk, wrong: Any, reason: str
) -> None:
    plan = await registered(desk)
    good = [asking(plan), asking(plan)]
    bad = asking(plan, **wrong) if isinstance(wrong, dict) else wrong
    await desk.send(good[0], bad, good[1])

    assert await desk.receive() == 3

    assert sorted(desk.tasks()) == sorted(message["request_id"] for message in good)
    (kept,) = desk.refused()
    assert reason in kept
    assert await desk.waiting() == 0


async def test_a_context_that_does_not_fit_the_template_is_refused_with_the_place(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    plan = await registered(desk)
    strict = replace(plan, input_schema={"type": "object", "required": ["amount"]})
    await desk.plans.register(strict, force=True)
    correlation = "0199c1f4-8a52-7000-8000-00000000c0de"
    wrong = asking(strict, options={"correlation_id": correlation})
    await desk.send(wrong, asking(strict, context={"amount": 1}))
    await desk.receive()

    assert len(desk.tasks()) == 1
    assert "amount" in desk.refused()[0]
    whose = f"correlation_id={correlation} task_uuid={wrong['request_id']} namespace={plan.namespace} id="
    assert any(message.startswith(f"task_request_refused {whose}") for message in caplog.messages)


async def test_requests_wait_while_the_database_is_away(desk: Desk) -> None:
    """A crash between taking a message and its commit leaves the message."""
    plan = await registered(desk)
    message = asking(plan)
    await desk.send(message)
    broken = unreachable(desk)
    with pytest.raises(Exception, match="cannot connect"):
        await broken.receive(CompletingWorker(desk.lab.one.worker), 10)

    assert await desk.receive() == 1, "it was given back at once"
    assert desk.tasks() == [message["request_id"]]


class _Trusts(DraftFactory):
    """As a check that lets a text through that the database refuses."""

    def draft(self, plan: Plan, request: Any, task_uuid: str | None = None) -> Draft:
        draft = super().draft(plan, request, task_uuid)
        return replace(draft, item={**draft.item, "reason": "\0"}) if "passes" in request.context else draft


async def test_what_only_the_database_refuses_holds_nobody_up_either(desk: Desk) -> None:
    plan = await registered(desk)
    good = [asking(plan), asking(plan)]
    await desk.send(good[0], asking(plan, context={"passes": True}), good[1])

    assert await desk.receive(TaskRequestConsumer(desk.engine, desk.plans, _Trusts(new_task_uuid), _Settable())) == 3

    assert sorted(desk.tasks()) == sorted(message["request_id"] for message in good)
    (kept,) = desk.refused()
    assert "22P05" in kept
    assert await desk.waiting() == 0


class _Killed(BaseException):
    """The process ends here."""


class _Kills(DraftFactory):
    """Meets requests, and ends the process over one whose context holds `kills`."""

    def draft(self, plan: Plan, request: Any, task_uuid: str | None = None) -> Draft:
        if "kills" in request.context:
            raise _Killed
        return super().draft(plan, request, task_uuid)


async def test_a_request_that_ends_every_process_is_set_aside_and_those_beside_it_are_met(desk: Desk) -> None:
    plan = await registered(desk)
    good = [asking(plan) for _ in range(6)]
    await desk.send(*good[:3], asking(plan, context={"kills": True}), *good[3:])
    deaths = 0
    for _ in range(30):
        inbox = TaskRequestConsumer(desk.engine, desk.plans, _Kills(new_task_uuid), _Settable())
        try:
            while await desk.receive(inbox):
                pass
        except _Killed:
            deaths += 1
            desk.lab.observer.execute("update pgmq.q_orchestration_task_requests set vt = clock_timestamp()")

    assert deaths == 5
    assert sorted(desk.tasks()) == sorted(message["request_id"] for message in good)
    (kept,) = desk.refused()
    assert "taken 5 times and never met" in kept
    assert await desk.waiting() == 0


async def test_an_outage_counts_against_no_request(desk: Desk) -> None:
    plan = await registered(desk)
    messages = [asking(plan), asking(plan)]
    await desk.send(*messages)
    for _ in range(12):
        broken = unreachable(desk)  # each a new one, which has not yet learnt to wait
        with pytest.raises(Exception, match="cannot connect"):
            await broken.receive(CompletingWorker(desk.lab.one.worker), 10)

    for _ in range(2):
        await desk.receive()
    assert sorted(desk.tasks()) == sorted(message["request_id"] for message in messages)
    assert desk.refused() == []


async def test_requests_for_a_full_namespace_wait_however_long_it_takes_and_are_met_then(desk: Desk) -> None:
    """Each look at them would count as a delivery, and a broker buries what was delivered too often."""
    plan = await registered(desk)
    await desk.send(asking(plan), asking(plan))
    await desk.receive()
    await desk.send(asking(plan), asking(plan))
    inbox = desk.requests(SubmissionAdmission(desk.engine, clock := _Settable(), SHALLOW), clock)

    for _ in range(5):
        assert await desk.receive(inbox) == 2
        assert await desk.receive(inbox) == 0, "nothing is taken for a while"
        assert 0 < inbox.longest_pause() <= PUT_OFF_SECONDS
        clock.time += PUT_OFF_SECONDS

    assert len(desk.tasks()) == 2
    assert (await desk.waiting(), desk.refused()) == (2, [])
    deliveries = "select max(read_ct) from pgmq.q_orchestration_task_requests"
    assert desk.lab.observer.value(deliveries) == 0
    assert await desk.receive() == 2
    assert len(desk.tasks()) == 4


async def test_of_the_requests_for_a_full_namespace_the_urgent_ones_are_met(desk: Desk) -> None:
    plan = await registered(desk)
    await desk.send(asking(plan))
    await desk.receive()
    usual, urgent = asking(plan), asking(plan, options={"priority": 1})
    await desk.send(usual, urgent)
    inbox = desk.requests(SubmissionAdmission(desk.engine, clock := _Settable(), SHALLOW), clock)

    assert await desk.receive(inbox) == 2

    assert urgent["request_id"] in desk.tasks()
    assert usual["request_id"] not in desk.tasks()
    assert await desk.waiting() == 1


async def test_a_request_for_a_template_of_a_newer_version_waits_for_a_newer_orchestrator(desk: Desk) -> None:
    plan = await registered(desk)
    desk.lab.observer.execute("update tasker.templates set plan = jsonb_set(plan, '{steps,0,moon_phase}', '1')")
    await desk.send(asking(plan))
    older = Desk(desk.lab, desk.engine, PlanStore(desk.engine.connection))
    await older.receive()
    assert (desk.tasks(), desk.refused(), await desk.waiting()) == ([], [], 1)

    desk.lab.observer.execute("update tasker.templates set plan = plan #- '{steps,0,moon_phase}'")
    desk.lab.observer.execute("update pgmq.q_orchestration_task_requests set vt = clock_timestamp()")
    newer = Desk(desk.lab, desk.engine, PlanStore(desk.engine.connection))
    assert await newer.receive() == 1
    assert len(desk.tasks()) == 1


async def test_requests_for_other_namespaces_are_met_beside_those_that_are_put_off(desk: Desk) -> None:
    full, free = await registered(desk), replace(desk.lab.chain(1, name="free"), namespace="with_room")
    await desk.plans.register(free)
    await desk.send(asking(full))
    await desk.receive()
    wanted = asking(free)
    await desk.send(asking(full), wanted)
    clock = _Settable()
    inbox = desk.requests(SubmissionAdmission(desk.engine, clock, SHALLOW), clock)

    assert await desk.receive(inbox) == 2

    assert desk.lab.task(wanted["request_id"]).state
    assert await desk.waiting() == 1


class _Settable(Clock):
    """A clock that stands until it is set."""

    def __init__(self) -> None:
        self.time = 0.0

    def monotonic(self) -> float:
        return self.time
