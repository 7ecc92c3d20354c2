"""Rule 7: no wake-up is lost in either order, and nobody is notified who does not sleep."""

from __future__ import annotations

import asyncio
import random
from contextlib import AbstractContextManager, nullcontext
from types import SimpleNamespace
from typing import Any

import psycopg

from tasker.db.connection import Connection
from tasker.engine.calls import Engine
from tasker.engine.exchange import AdvanceResult, CompletingWorker
from tasker.engine.plans import PlanStore
from tasker.engine.polling import QueuePoll, QueuePoller
from tasker.execution.claiming import Claimer
from tasker.execution.slots import Slots
from tasker.messaging.backends import load_backend
from tasker.messaging.service import MessagingService
from tasker.orchestration.results import ResultProcessor
from tasker.orchestration.sweep import Sweeper
from tests.integration.engine.protocol.conftest import AT_ONCE
from tests.support.engine_fixture import Lab, Session, change
from tests.support.fleets.at_work import AtWork
from tests.support.random_plans import Spec


def listener(lab: Lab) -> psycopg.Connection[Any]:
    connection = lab.session().connection
    connection.execute("listen tasker_work")
    return connection


def heard(connection: psycopg.Connection[Any]) -> list[str]:
    """What was sent so far. A round trip brings everything that was committed before it."""
    connection.execute("select 1")
    return [notification.payload for notification in connection.notifies(timeout=0)]


def mark(session: Session, action: str) -> None:
    session.core("worker", {"action": action, "worker": session.worker, "lease_ms": 30_000})


def wake(session: Session) -> int:
    return int(session.value("select tasker.wake_v1(%s)", [session.lab.namespace]))


def test_a_worker_that_sleeps_before_the_commit_is_notified_after_it(lab: Lab) -> None:
    _, claims = lab.running(lab.chain())
    lab.two.start_worker()
    ears = listener(lab)
    mark(lab.two, "sleep")

    lab.one.finish(claims["s0"])

    assert wake(lab.one) == 1
    assert heard(ears) == [f"@{lab.namespace}"]


def test_a_worker_that_falls_asleep_after_the_sender_looked_finds_the_work_itself(lab: Lab) -> None:
    _, claims = lab.running(lab.chain())
    lab.two.start_worker()
    assert not lab.two.claim()

    lab.one.finish(claims["s0"])
    assert wake(lab.one) == 0
    mark(lab.two, "sleep")

    assert len(lab.two.claim()) == 1, "it looks again after the mark"


def test_a_mark_that_is_not_committed_yet_is_not_seen_and_need_not_be(lab: Lab) -> None:
    """The narrowest case: the sender looks for sleepers between the mark and its commit."""
    _, claims = lab.running(lab.chain())
    lab.two.start_worker()

    with lab.transaction(lab.two):
        mark(lab.two, "sleep")
        lab.one.finish(claims["s0"])
        assert wake(lab.one) == 0

    assert len(lab.two.claim()) == 1


def test_work_that_is_not_committed_yet_is_followed_by_a_wake_up(lab: Lab) -> None:
    """The other narrow case: the worker looks between the sender's write and its commit."""
    _, claims = lab.running(lab.chain())
    lab.two.start_worker()
    ears = listener(lab)

    with lab.transaction(lab.one):
        lab.one.finish(claims["s0"])
        mark(lab.two, "sleep")
        assert not lab.two.claim()

    assert wake(lab.one) == 1
    assert heard(ears) == [f"@{lab.namespace}"]


def test_nobody_is_notified_while_nobody_sleeps(lab: Lab) -> None:
    _, claims = lab.running(lab.chain())
    lab.two.start_worker()
    ears = listener(lab)
    mark(lab.two, "sleep")
    mark(lab.two, "wake")

    lab.one.finish(claims["s0"])

    assert wake(lab.one) == 0
    assert heard(ears) == []


def test_only_living_workers_of_the_namespace_are_woken(lab: Lab) -> None:
    gone, stopped, other = lab.session(), lab.session(), lab.session()
    for session in (gone, stopped, other):
        session.start_worker(lease_ms=-1 if session is gone else 30_000)
        mark(session, "sleep")
    mark(stopped, "stop")
    namespaces = {"action": "serve", "worker": other.worker, "lease_ms": 30_000, "namespaces": ["elsewhere"]}
    other.core("worker", namespaces)

    assert wake(lab.one) == 0


def test_submitting_notifies_by_its_commit_and_never_by_a_rollback(lab: Lab) -> None:
    plan = lab.chain(1)
    lab.submit(plan)
    ears = listener(lab)

    with lab.one.connection.transaction(force_rollback=True):
        lab.one.submit(plan, {})
    assert heard(ears) == []
    with lab.transaction(lab.one):
        lab.one.submit(plan, {})
        assert heard(ears) == [], "not before the commit"
    assert heard(ears) == [f"@{lab.namespace}"]


def test_a_submission_that_enqueues_nothing_notifies_nobody(lab: Lab) -> None:
    plan = lab.chain(1)
    lab.submit(plan)
    lab.window = 0
    ears = listener(lab)

    lab.submit(plan)

    assert heard(ears) == []


def test_refused_step_wakes_only_workers_that_may_serve_it(lab: Lab) -> None:
    """Its message is visible only after a while: the answer of the claim says when, and names the step."""
    lab.submit(lab.plan(Spec("lost")))
    refusing, serving, busy, elsewhere = (lab.session() for _ in range(4))
    for session in (serving, busy, elsewhere):
        session.start_worker()
    worker = AtWork(lab, refusing, "lost")
    worker.look()
    elsewhere.core("worker", {"action": "serve", "worker": elsewhere.worker, "namespaces": ["elsewhere"]})
    for session in (refusing, serving, elsewhere):
        mark(session, "sleep")

    answer = refusing.claim_answer(1, unserved=sorted(worker.unserved))

    ((step, delay_ms),) = answer["later"].items()
    assert delay_ms > 0
    ears = listener(lab)
    assert lab.observer.value("select tasker.wake_steps_v1(%s)", [step]) == 1
    assert heard(ears) == [serving.worker]

    lab.observer.execute(f"update pgmq.q_worker_{lab.namespace}_queue set vt = clock_timestamp()")
    (claim,) = serving.claim()
    assert lab.observer.value("select tasker.wake_steps_v1(%s)", [step]) == 0, "it is claimed"
    serving.finish(claim)


def test_a_released_step_of_an_ordered_namespace_wakes_others_too(lab: Lab) -> None:
    lab.submit(lab.plan(Spec("first")), {"priority": 1})
    (claim,) = lab.one.take(1)
    lab.two.start_worker()
    mark(lab.two, "sleep")

    lab.one.advance(change("release", claim))

    assert lab.observer.value("select tasker.wake_steps_v1(%s)", [claim["step"]]) == 1
    assert lab.two.take(1)


class LateWork(Connection):
    """Submits a task at the worst moment: after the worker's last look and before its mark."""

    lab: Lab

    async def call(self, expression: str, args: dict[str, Any] | str) -> dict[str, Any]:
        if isinstance(args, dict) and args.get("action") == "sleep":
            self.lab.one.submit(self.lab.chain(1), {})
        return await super().call(expression, args)


async def test_a_sweep_wakes_whoever_sleeps_while_hints_lie_in_the_queue(lab: Lab) -> None:
    """The announcement was lost, the hints were not: nothing is repaired, the sleepers are woken."""
    connection = Connection(lab.url)
    engine = Engine(connection, MessagingService(load_backend("pgmq", {})))
    processor = ResultProcessor(engine, random.Random(1))
    advanced: list[AdvanceResult] = []
    sweeper = Sweeper(engine, processor, PlanStore(connection), random.Random(1), AT_ONCE, advanced.append)
    lab.submit(lab.chain(1))
    try:
        repairs = await sweeper.sweep(CompletingWorker(lab.two.worker))
    finally:
        await connection.close()

    assert not +repairs
    assert lab.namespace in AdvanceResult.merged(advanced).sent


class Ears:
    """Hears of work by announcements only."""

    def longest_pause(self) -> None:
        return None

    def poll(self, *, polled: bool) -> AbstractContextManager[QueuePoll]:
        return nullcontext(QueuePoll())


async def test_the_claimer_looks_again_after_its_mark(lab: Lab) -> None:
    """No notification reaches it and it never polls: only the second look can find the task."""
    claimed = asyncio.get_running_loop().create_future()
    connection = LateWork(lab.url)
    connection.lab = lab
    engine = Engine(connection, MessagingService(load_backend("pgmq", {})))
    lab.two.start_worker()
    lab.submit(lab.plan(Spec("first")))
    lab.one.run_all()

    async def offer(ask: Any, limit: int) -> Any:
        answer = await ask(5)
        if answer.claims and not claimed.done():
            claimed.set_result([row._asdict() for row in answer.claims])
        return answer

    worker = SimpleNamespace(
        identity=lab.two.worker,
        slots=Slots(5),
        namespace_ids=[lab.namespace_id],
        caller=lambda slots: CompletingWorker(lab.two.worker, slots, [lab.namespace_id], (), 100, 1000, 1000),
        offer=offer,
        inputs=SimpleNamespace(often=[]),
        settings=SimpleNamespace(drowse_ms=0),
    )

    async def never(*_: Any) -> Any:
        raise AssertionError("nothing is held")

    claimer = Claimer(
        engine,
        worker,  # type: ignore[arg-type]
        [lab.namespace],
        QueuePoller(Ears(), random.Random(1)),
        random.Random(1),
        never,
        on_lost=lambda: None,
    )
    running = asyncio.create_task(claimer.run())
    try:
        (claim,) = await asyncio.wait_for(claimed, 60)
    finally:
        claimer.drain()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await connection.close()
    lab.two.finish(claim)


def test_a_worker_that_stopped_in_its_sleep_is_awake_when_it_starts_again(lab: Lab) -> None:
    _, claims = lab.running(lab.chain())
    lab.two.start_worker()
    mark(lab.two, "sleep")
    mark(lab.two, "stop")
    lab.two.start_worker()

    lab.one.finish(claims["s0"])

    assert wake(lab.one) == 0
