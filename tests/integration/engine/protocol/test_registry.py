"""The registry of processes, and what it says about steps that nobody serves (rule 16)."""

from __future__ import annotations

import json
import random
from typing import Any

from tasker.engine.plans import PlanStore
from tasker.orchestration.sweep import Sweeper
from tasker.services.fleet.overview import Workers
from tasker.views.fleet import WorkerInfo
from tests.integration.engine.protocol.conftest import Orchestra, at_once
from tests.support.command_line import invoke
from tests.support.engine_fixture import Item, Lab, Session, change


def unserved(lab: Lab, task: str) -> list[str]:
    """The steps of the task that no worker takes."""
    query = """select s.name from tasker.workflow_steps s
      where s.task_uuid = %s and s.ordinal = any (tasker.unserved_ordinals(%s, s.template_id)) order by 1"""
    return [row.name for row in lab.observer.rows(query, task, lab.namespace)]


def refuse(session: Session, claim: Item) -> None:
    """The session's worker cannot resolve the step's handler and puts it back."""
    session.advance(change("release", claim, n={"unserved": "missing.handler"}))


async def impatient_sweep(orchestra: Orchestra, unserved_seconds: float = 0.001) -> dict[str, int]:
    settings = at_once(unserved_timeout_seconds=unserved_seconds)
    plans = PlanStore(orchestra.engine.connection)
    sweeper = Sweeper(orchestra.engine, orchestra.processor, plans, random.Random(1), settings)
    return dict(+await sweeper.sweep(orchestra.caller()))


async def entry(orchestra: Orchestra, worker: str, **which: Any) -> WorkerInfo:
    (found,) = [row for row in await Workers(orchestra.engine.connection).list(**which) if row.worker == worker]
    return found


def test_a_namespace_without_a_live_worker_is_unserved(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(2))
    assert unserved(lab, task) == ["s0", "s1"]

    lab.one.start_worker()
    assert not unserved(lab, task)

    lab.observer.set_time(31)
    assert unserved(lab, task) == ["s0", "s1"], "its lease is over"


def test_a_draining_worker_and_an_orchestrator_serve_nothing(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(1))
    lab.one.start_worker()
    lab.one.core("worker", {"action": "drain", "worker": lab.one.worker})
    entered = {"action": "start", "kind": "orchestrator", "worker": lab.two.worker, "lease_ms": 9000, "host": "h"}
    lab.two.core("worker", {**entered, "pid": 1, "namespaces": [lab.namespace], "concurrency": 0})

    assert unserved(lab, task) == ["s0"]


def test_a_step_is_unserved_once_every_live_worker_has_refused_it(lab: Lab) -> None:
    for session in (lab.one, lab.two):
        session.start_worker()
    task, claims = lab.running(lab.chain(1))

    refuse(lab.one, claims["s0"])
    assert not unserved(lab, task), "the second worker was not asked yet"
    (claim,) = lab.two.claim()
    refuse(lab.two, claim)
    assert unserved(lab, task) == ["s0"]

    lab.two.core("worker", {"action": "serve", "worker": lab.two.worker, "namespaces": [lab.namespace]})
    assert not unserved(lab, task), "it has loaded more handlers"


async def test_a_step_waits_for_a_busy_worker_that_may_have_its_handler(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    for session in (lab.one, lab.two):
        session.start_worker()
    task, claims = lab.running(lab.chain(1))
    refuse(lab.one, claims["s0"])

    assert not await impatient_sweep(orchestra)
    assert lab.states(task) == {"s0": "enqueued"}


async def test_an_outage_of_all_workers_fails_no_step(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    lab.one.start_worker()
    task, claims = lab.running(lab.chain(1))
    refuse(lab.one, claims["s0"])
    lab.one.core("worker", {"action": "stop", "worker": lab.one.worker})

    assert not await impatient_sweep(orchestra)
    assert lab.states(task) == {"s0": "enqueued"}


async def test_without_a_limit_a_step_waits_for_ever(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    lab.one.start_worker()
    task, claims = lab.running(lab.chain(1))
    refuse(lab.one, claims["s0"])

    assert not await impatient_sweep(orchestra, 0)
    assert await impatient_sweep(orchestra) == {"nobody_serves": 1}
    assert lab.states(task) == {"s0": "error"}


async def test_the_list_tells_how_each_process_is(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    _, claims = lab.running(lab.chain(1))
    lab.one.start_worker()
    held = [[claims["s0"]["step"], claims["s0"]["token"]]]
    lab.one.core("worker", {"action": "beat", "worker": lab.one.worker, "lease_ms": 10_000, "held": held})

    found = await entry(orchestra, lab.one.worker)
    assert (found.kind, found.state, found.in_hand, found.concurrency) == ("worker", "live", 1, 10)
    assert found.namespaces == [lab.namespace]
    assert 0 < found.lease_left_ms <= 10_000

    lab.one.core("worker", {"action": "drain", "worker": lab.one.worker})
    assert (await entry(orchestra, lab.one.worker)).state == "draining"

    lab.one.core("worker", {"action": "stop", "worker": lab.one.worker})
    assert lab.one.worker not in [row.worker for row in await Workers(orchestra.engine.connection).list()]
    assert (await entry(orchestra, lab.one.worker, stopped=True)).state == "stopped"


def test_ended_processes_are_listed_only_when_all_are_asked_for(lab: Lab) -> None:
    lab.one.start_worker()
    lab.two.start_worker()
    lab.two.core("worker", {"action": "stop", "worker": lab.two.worker})

    def listed(*options: str) -> set[str]:
        shown = invoke("worker", "list", *options, "--format", "json", database=lab.url)
        return {row["worker"] for row in json.loads(shown.stdout)} & {lab.one.worker, lab.two.worker}

    assert listed() == {lab.one.worker}
    assert listed("--all") == {lab.one.worker, lab.two.worker}


async def test_a_process_that_went_silent_is_lost_and_forgotten_after_a_time(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    lab.one.start_worker(lease_ms=0)
    assert (await entry(orchestra, lab.one.worker)).state == "lost"
    await orchestra.sweep()
    assert (await entry(orchestra, lab.one.worker)).state == "lost", "kept for a day"

    plans, patient = (
        PlanStore(orchestra.engine.connection),
        at_once(forget_workers_after_seconds=60),
    )
    sweeper = Sweeper(orchestra.engine, orchestra.processor, plans, random.Random(1), patient)
    for silent, is_known in ((30, True), (90, False)):
        ended = "update tasker.workers set lease_until = tasker.now() - %s * interval '1 s' where worker_uuid = %s"
        lab.observer.execute(ended, silent, lab.one.worker)
        await sweeper.sweep(orchestra.caller())
        known = [row.worker for row in await Workers(orchestra.engine.connection).list()]
        assert (lab.one.worker in known) == is_known


def test_entering_twice_is_entering_once(lab: Lab) -> None:
    """The answer to the first attempt may have been lost (rule 4)."""
    for _ in range(2):
        lab.one.start_worker()

    query = "select count(*) from tasker.workers where worker_uuid = %s"
    assert lab.observer.value(query, lab.one.worker) == 1


async def test_a_step_whose_handler_somebody_had_until_lately_does_not_fail(orchestra: Orchestra) -> None:
    """A worker that has it is being started again: the step waits as long as for any other."""
    lab = orchestra.lab
    lab.one.start_worker()
    _, claims = lab.running(lab.chain(1))
    refuse(lab.one, claims["s0"])
    lab.observer.execute("update tasker.unserved_steps set since = since - interval '1 hour'")
    lab.two.start_worker()
    expire = (
        "update tasker.workers set lease_until = pg_catalog.now() - make_interval(secs => %s) where worker_uuid = %s"
    )

    lab.observer.execute(expire, 30, lab.two.worker)
    assert not await impatient_sweep(orchestra, unserved_seconds=60)

    lab.observer.execute(expire, 90, lab.two.worker)
    assert await impatient_sweep(orchestra, unserved_seconds=60) == {"nobody_serves": 1}


async def test_steps_that_nobody_serves_are_one_group_of_dead_letters(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    lab.one.start_worker()
    lab.submit(lab.chain(1), {}, {})
    for claim in lab.one.claim():
        refuse(lab.one, claim)

    assert await impatient_sweep(orchestra) == {"nobody_serves": 2}
    found = lab.observer.rows("select fingerprints, dlq_reason from tasker.tasks_dlq")
    assert [row.dlq_reason for row in found] == ["worker_unavailable"] * 2
    assert [len(row.fingerprints) for row in found] == [1, 1]
    assert found[0].fingerprints == found[1].fingerprints


async def test_a_step_that_is_refused_again_and_again_has_waited_since_the_first_time(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    lab.one.start_worker()
    _, claims = lab.running(lab.chain(1))
    refuse(lab.one, claims["s0"])
    lab.observer.execute("update tasker.unserved_steps set since = since - interval '1 hour'")
    for _ in range(2):
        (again,) = lab.one.claim()
        refuse(lab.one, again)

    assert await impatient_sweep(orchestra, unserved_seconds=60) == {"nobody_serves": 1}


async def test_a_step_that_ran_meanwhile_has_waited_since_it_was_refused_again(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    lab.one.start_worker()
    _, claims = lab.running(lab.chain(1))
    refuse(lab.one, claims["s0"])
    lab.observer.execute("update tasker.unserved_steps set since = since - interval '1 hour'")
    (ran,) = lab.one.claim()
    lab.one.advance(change("release", ran, n={"reason": "stop"}))
    (again,) = lab.one.claim()
    refuse(lab.one, again)

    assert not await impatient_sweep(orchestra, unserved_seconds=60)
