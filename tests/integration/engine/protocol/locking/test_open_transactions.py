"""A transaction that stays open, because its program takes its time or is frozen, holds up nobody else's work."""

from __future__ import annotations

import asyncio
import random
from uuid import uuid4

import pytest

from tasker.clock import new_task_uuid
from tasker.db.connection import Connection
from tasker.engine.calls import Engine
from tasker.engine.exchange import CompletingWorker
from tasker.messaging.backends import load_backend
from tasker.messaging.service import MessagingService
from tasker.orchestration.results import ResultProcessor
from tasker.template.plan import Plan
from tests.integration.engine.protocol.conftest import result_of
from tests.support.engine_fixture import Lab, Session
from tests.support.random_plans import Spec, StepType, create_steps

SHARDS = 16


def twin(lab: Lab, other: Session) -> Session:
    """A session that counts in the same shard as the other one, and that would rather fail than wait."""
    missed = []
    try:
        while (session := lab.session(options="-c lock_timeout=1s")).pid % SHARDS != other.pid % SHARDS:
            missed.append(session)  # kept for now: the next one gets another process then
    finally:
        for each in missed:
            each.connection.close()
    return session


def submit(session: Session, plan: Plan, tasks: int = 1) -> list[str]:
    """Submit without registering the template, which is there."""
    template = session.value("select template_id from tasker.templates where hash = %s", plan.hash)
    entries = [{"id": new_task_uuid(), "identity": str(uuid4())} for _ in range(tasks)]
    args = {"template": template, "window": session.lab.window, "tasks": entries}
    return [str(task) for task in session.call("submit", args)["created"]]


def registered(lab: Lab, *specs: Spec) -> Plan:
    """A plan whose template and queue exist."""
    plan = lab.plan(*specs)
    lab.submit_one(plan)
    lab.one.run_all()
    return plan


def test_a_task_that_is_submitted_and_not_committed_holds_up_no_other_task(lab: Lab) -> None:
    plan = registered(lab, Spec("a"), Spec("b", depends_on=("a",)))
    with lab.transaction(lab.one):
        (late,) = submit(lab.one, plan)
        other = twin(lab, lab.one)
        (early,) = submit(other, plan)
        assert other.run_all() == 2
        assert lab.task(early).state == "complete"

    assert other.run_all() == 2
    assert lab.task(late).state == "complete"


@pytest.mark.parametrize("waits", [True, False])
async def test_a_task_that_somebody_keeps_locked_does_not_hold_up_the_results_of_others(lab: Lab, waits: bool) -> None:
    connection = Connection(lab.url, settings=f"-c lock_timeout={100 if waits else 0}")
    engine = Engine(connection, MessagingService(load_backend("pgmq", {})))
    processor, caller = ResultProcessor(engine, random.Random(1)), CompletingWorker(lab.one.worker)
    plan = lab.plan(Spec("a"), Spec("pick", StepType.DECISION), Spec("b", depends_on=("pick",)))
    kept, other = lab.submit(plan, {}, {})
    results = [
        result_of(plan, claim, create_steps("b") if claim["name"] == "pick" else None) for claim in lab.one.claim()
    ]
    with lab.transaction(lab.two):
        lab.two.execute("select from tasker.tasks where task_uuid = %s for update", kept)
        async with asyncio.timeout(None if waits else 30):  # who does not wait needs no time limit of the database
            advanced = await processor.process(results, caller, wait=waits)
        again = [result for result in results if advanced.comes_again(result.claim.step_uuid)]
        assert {result.claim.task_uuid for result in again} == {kept}
        assert lab.states(other) == {"a": "complete", "pick": "complete", "b": "enqueued"}

    advanced = await processor.process(again, caller)
    await connection.close()
    assert not any(map(advanced.comes_again, advanced.verdicts))
    assert lab.states(kept) == {"a": "complete", "pick": "complete", "b": "enqueued"}


def test_the_number_of_enqueued_steps_is_right_whoever_counted(lab: Lab) -> None:
    plan = registered(lab, Spec("a"))
    others = [twin(lab, lab.one) for _ in range(2)]
    with lab.transaction(lab.one):
        submit(lab.one, plan, 2)
        with lab.transaction(others[0]):
            submit(others[0], plan, 3)
            submit(others[1], plan)
            assert enqueued(lab) == 1
        assert enqueued(lab) == 4
    assert enqueued(lab) == 6

    others[1].run_all()
    assert enqueued(lab) == 0
    assert not lab.observer.rows("select * from tasker.violations_v1('{}')")


def test_shards_are_used_again(lab: Lab) -> None:
    """There are as many as there were transactions at the same time, not as many as there were sessions."""
    plan = registered(lab, Spec("a"))
    for _ in range(3):
        with lab.transaction(lab.one):
            submit(lab.one, plan)
            submit(twin(lab, lab.one), plan)

    query = "select count(*) from tasker.enqueue_counters where namespace_id = %s"
    assert lab.observer.value(query, lab.namespace_id) == 2


def enqueued(lab: Lab) -> int:
    query = "select coalesce(sum(enqueued), 0)::int from tasker.enqueue_counters where namespace_id = %s"
    return int(lab.observer.value(query, lab.namespace_id))
