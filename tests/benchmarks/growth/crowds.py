"""Many tasks and many processes: what is asked often, or by everybody."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from typing import Any
from uuid import uuid4

from tasker.clock import SystemClock
from tasker.db.connection import Connection
from tasker.db.sql_files import query
from tasker.engine.calls import Engine
from tasker.engine.exchange import CompletingWorker
from tasker.engine.plans import PlanStore
from tasker.messaging.backends import load_backend
from tasker.messaging.service import MessagingService
from tasker.orchestration.pending_work import ExclusiveTurns
from tasker.orchestration.results import ResultProcessor
from tasker.orchestration.sweep import Sweeper
from tasker.orchestration.upkeep import DUE_SLICE
from tasker.services.tasks.lists import TaskFilter, TaskLists
from tests.benchmarks.growth.case import Case
from tests.support.copies import copy_task
from tests.support.engine_fixture import Direct, Lab, fail, ok, retry
from tests.support.random_plans import Spec

OPEN = {
    "tasks.state": "'steps_in_process'",
    "workflow_steps.hinted_at": "x.hinted_at + interval '1 hour'",
    "workflow_steps.hint_count": "1",
}
"""Of the copies of an open task: they run, and the hints of their steps are young."""
DUE = """insert into tasker.workflow_steps (workflow_step_uuid, task_uuid, namespace_id, template_id, ordinal, name,
    state, unmet, attempts, max_attempts, retryable, due_at, created_at, updated_at)
  select tasker.step_uuid(task_uuid, 100 + n), task_uuid, namespace_id, template_id, ordinal, 'due' || n,
    'waiting_for_retry', 0, 1, 3, true, now() - interval '1 hour', created_at, updated_at
  from tasker.workflow_steps cross join generate_series(1, %s) n where task_uuid = %s"""
SWEEPERS, FEW = 8, 20


def listing(lab: Lab, finished: int) -> Callable[[], Any]:
    """Lists, pages and counts of what failed and of what runs, a few tasks each, among so many that are complete."""
    plan = lab.chain(2)
    complete, failed = lab.submit_one(plan), lab.submit_one(plan)
    while held := lab.one.claim():
        lab.one.advance(*((fail if each["task"] == failed else ok)(each) for each in held))
    running = lab.submit_one(plan)
    copy_task(lab.one, complete, finished)
    copy_task(lab.one, failed, FEW - 1)
    copy_task(lab.one, running, FEW - 1, OPEN)
    lab.one.execute("vacuum analyze")
    tasks, lists = query("tasks", "list"), TaskLists(Direct(lab.one))

    def look() -> None:
        for status, number in (("error", FEW), ("steps_in_process", FEW), ("complete", finished + 1)):
            which = TaskFilter(status=status)
            shown = asyncio.run(lists.page(which, limit=FEW))
            rows = lab.one.connection.execute(tasks.encode(), {"tasks": shown}).fetchall()
            assert len(rows) == min(number, FEW), (status, len(rows))
            assert asyncio.run(lists.count(which, 10_000)) == min(number, 10_000), status

    return look


def due(lab: Lab, behind: int) -> Callable[[], Any]:
    """One step's retry is due behind so many of a task that somebody else keeps locked."""
    locked = lab.submit_one(lab.plan(Spec("only"), name="locked"))
    lab.one.claim()
    lab.one.execute(DUE, behind, locked)
    lab.submit_one(lab.plan(Spec("only"), name="free"))
    lab.one.advance(*(retry(claim, delay_ms=0) for claim in lab.one.claim()))
    lab.one.execute("analyze")
    lab.two.execute("begin")
    lab.two.execute("select from tasker.tasks where task_uuid = %s for no key update", locked)

    def promote() -> None:
        assert lab.one.call("due", lab.one.args(limit=100))["promoted"] == 1

    return promote


def sweeping(lab: Lab, tasks: int) -> Callable[[], Any]:
    """An interval of eight processes that sweep when it is their turn, while so many tasks are open."""
    task = lab.submit_one(lab.chain(2))
    copy_task(lab.one, task, tasks, OPEN)
    lab.one.execute("select tasker.count_enqueued(array[%s], array[%s])", lab.namespace_id, tasks)
    lab.one.execute("vacuum analyze")
    return lambda: asyncio.run(_interval(lab))


async def _interval(lab: Lab) -> None:
    connections = [Connection(lab.url) for _ in range(SWEEPERS)]
    turns = 0
    for connection in connections:
        engine = Engine(connection, MessagingService(load_backend("pgmq", {})))
        mine, _ = await ExclusiveTurns(engine, "sweep", SystemClock(), random.Random(1), 600.0).take()
        turns += mine
        if mine:
            sweeper = Sweeper(
                engine, ResultProcessor(engine, random.Random(1)), PlanStore(connection), random.Random(1)
            )
            repairs = await sweeper.sweep(CompletingWorker(lab.one.worker, 0, [lab.namespace_id], window=lab.window))
            assert not +repairs, repairs
    assert turns == 1, turns
    for connection in connections:
        await connection.close()


def idling(lab: Lab, processes: int) -> Callable[[], Any]:
    """What each of so many workers asks about once a second while nothing happens, and five thousand tasks are open."""
    task = lab.submit_one(lab.chain(2))
    lab.one.claim()
    copy_task(lab.one, task, 5_000, OPEN)
    workers = [str(uuid4()) for _ in range(processes)]
    for worker in workers:
        about = {"host": "here", "pid": 1, "namespaces": [lab.namespace], "concurrency": 10, "lease_ms": 3_600_000}
        lab.one.core("worker", {"action": "start", "worker": worker, **about})
    lab.one.execute("analyze")

    def ask() -> None:
        for worker in workers:
            lab.one.core("take_turn", {"kind": "sweep pgmq", "after_ms": 600_000})
            lab.one.call("due", lab.one.args(worker=worker, slots=10))
            assert lab.one.claim(10, worker=worker) == [], "nothing happens"
            lab.one.core("worker", {"action": "beat", "worker": worker, "lease_ms": 3_600_000, "held": []})

    opened = lab.one.value("select count(*) from tasker.tasks where not complete")
    assert opened == 5_001, opened
    return ask


def timed(lab: Lab, tasks: int, delay_ms: int) -> None:
    """So many tasks that were submitted with a delay, each with a timer."""
    task = lab.submit_one(lab.plan(Spec("only")), delay_ms=delay_ms)
    own_step = "overlay(c.task::text placing right(x.subject::text, 6) from 31)::uuid"
    copy_task(lab.one, task, tasks - 1, {"timers.subject": own_step})
    lab.one.execute("vacuum analyze")


def delayed(lab: Lab, tasks: int) -> Callable[[], Any]:
    """A look at the timers, a claim and a sweep, while so many tasks wait for a time that is days away."""
    timed(lab, tasks, 10 * 24 * 3_600_000)

    def look() -> None:
        assert lab.one.call("due", lab.one.args(limit=DUE_SLICE)).get("promoted", 0) == 0
        assert lab.one.claim() == []
        asyncio.run(_interval(lab))

    return look


def storm(lab: Lab, tasks: int) -> Callable[[], Any]:
    """So many tasks whose time has come in one moment begin, a slice after the other, as one timekeeper moves them."""
    timed(lab, tasks, 1)

    def begin() -> None:
        begun = 0
        while moved := lab.one.call("due", lab.one.args(limit=DUE_SLICE)).get("promoted", 0):
            begun += moved
        assert begun == tasks, begun

    return begin


CASES = (
    Case("delayed", "delayed tasks", 100_000, 3.0, delayed),
    Case("timer_storm", "timers due at once", 100_000, 60.0, storm),
    Case("list", "finished tasks", 200_000, 0.1, listing),
    Case("due", "retries of a locked task", 20_000, 0.5, due),
    Case("sweep", "open tasks, 8 processes", 70_000, 3.0, sweeping),
    Case("idle", "processes", 100, 1.0, idling),
)
