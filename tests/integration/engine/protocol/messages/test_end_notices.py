"""Who waits for a task is told of its end by whoever ends it, behind the commit, and nobody else is told anything."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any
from uuid import uuid4

import pytest

from tasker.clock import new_uuid
from tasker.db.connection import Connection
from tasker.db.session import Params, Rows
from tasker.engine.calls import Engine
from tasker.engine.plans import PlanStore
from tasker.engine.waiters import MOST, WaiterNotifications
from tasker.services.operators.steps import Steps
from tasker.services.tasks.read import Tasks
from tasker.template.plan import Plan
from tests.integration.engine.protocol.conftest import Orchestra, result_of
from tests.support.engine_fixture import Lab, ok

WAITER = "01900000-0000-7000-8000-00000000abcd"
PAYLOAD_BYTES = 8000
End = Callable[[Orchestra, Plan, str], Awaitable[object]]


def awaited(lab: Lab, plan: Plan, waiter: str | None = WAITER) -> str:
    task = lab.submit_one(plan)
    lab.observer.execute("update tasker.tasks set waiter = %s where task_uuid = %s", waiter, task)
    return task


def ears_of(lab: Lab, waiter: str = WAITER) -> Any:
    connection = lab.session().connection
    connection.execute(f'listen "tasker_done_{waiter}"'.encode())
    return connection


def heard(ears: Any) -> list[str]:
    """The payloads of all that was sent before."""
    ears.execute("select 1")
    return [each.payload for each in ears.notifies(timeout=0)]


async def by_a_result(orchestra: Orchestra, plan: Plan, task: str) -> object:
    (claim,) = orchestra.lab.one.claim()
    return await orchestra.process(result_of(plan, claim))


async def by_a_cancellation(orchestra: Orchestra, plan: Plan, task: str) -> object:
    return await Tasks(orchestra.engine).cancel(task)


async def by_a_resolution(orchestra: Orchestra, plan: Plan, task: str) -> object:
    (claim,) = orchestra.lab.one.claim()
    orchestra.lab.one.advance(
        {"s": claim["step"], "t": task, "kind": "fail", "k": claim["token"], "e": {"message": "no"}}
    )
    orchestra.lab.observer.execute("update tasker.tasks set waiter = %s where task_uuid = %s", WAITER, task)
    steps = Steps(orchestra.engine, PlanStore(orchestra.engine.connection))
    return await steps.resolve(task, "s0", reason="done by hand", actor="ada")


async def by_a_sweep_that_finds_it_forgotten(orchestra: Orchestra, plan: Plan, task: str) -> object:
    lab = orchestra.lab
    lab.observer.execute("update tasker.tasks set waiter = null")
    lab.one.run_all()
    forgotten = "state = 'evaluating_results', complete = false, completed_at = null"
    lab.observer.execute(f"update tasker.tasks set {forgotten}, waiter = %s", WAITER)
    return await orchestra.sweep()


async def by_a_sweep_that_ends_what_was_parked(orchestra: Orchestra, plan: Plan, task: str) -> object:
    lab = orchestra.lab
    (claim,) = lab.one.claim()
    lab.one.call("park", {"worker": lab.one.worker, "items": [ok(claim)]})
    return await orchestra.sweep()


@pytest.mark.parametrize(
    "end",
    [
        by_a_result,
        by_a_cancellation,
        by_a_resolution,
        by_a_sweep_that_finds_it_forgotten,
        by_a_sweep_that_ends_what_was_parked,
    ],
)
async def test_the_end_of_a_task_is_told_once_to_who_waits_for_it(orchestra: Orchestra, end: End) -> None:
    lab = orchestra.lab
    plan = lab.chain(1)
    task = awaited(lab, plan)
    ears = ears_of(lab)

    await end(orchestra, plan, task)

    assert lab.task(task).complete
    assert heard(ears) == [task]


async def test_nothing_is_sent_of_what_nobody_waits_for(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    plan = lab.chain(1)
    task = awaited(lab, plan, None)
    sent: list[str] = []

    class Counting(Connection):
        async def execute(self, statement: str, params: Params = None) -> Rows:
            sent.append(statement)
            return await super().execute(statement, params)

    connection = Counting(lab.url)
    engine = Engine(connection, orchestra.engine.messaging)
    (claim,) = lab.one.claim()
    await engine.call("advance", {"worker": lab.one.worker, "items": [ok(claim)]})
    await connection.close()

    assert lab.task(task).complete
    assert len(sent) == 1, "the change, and no other statement"


async def test_a_task_that_goes_on_is_not_told(orchestra: Orchestra) -> None:
    lab = orchestra.lab
    plan = lab.chain(2)
    awaited(lab, plan)
    ears = ears_of(lab)

    await by_a_result(orchestra, plan, "")

    assert heard(ears) == []


def test_ten_thousand_ends_fit_into_payloads(lab: Lab) -> None:
    ears, tasks = ears_of(lab), [str(uuid4()) for _ in range(10_000)]

    sent = lab.one.value("select tasker.notify_waiters_v1(%s)", json.dumps(dict.fromkeys(tasks, WAITER)))

    payloads = heard(ears)
    assert sent == len(payloads) == 50
    assert max(map(len, payloads)) < PAYLOAD_BYTES
    assert sorted(",".join(payloads).split(",")) == sorted(tasks)


def test_each_program_is_told_of_its_own(lab: Lab) -> None:
    mine, yours = str(uuid4()), str(uuid4())
    ears = ears_of(lab)

    lab.one.value("select tasker.notify_waiters_v1(%s)", json.dumps({mine: WAITER, yours: new_uuid()}))

    assert heard(ears) == [mine]


def register(lab: Lab, *tasks: str, waiter: str = WAITER) -> list[str]:
    return sorted(lab.two.core("register_waiter", {"tasks": tasks, "waiter": waiter})["told"])


def test_who_waits_later_is_told_as_well_and_once_is_enough(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(1))

    assert register(lab, task) == register(lab, task) == [task]

    (claim,) = lab.one.claim()
    assert lab.one.finish(claim)["waiters"] == {task: WAITER}


def test_who_comes_too_late_is_not_registered(lab: Lab) -> None:
    ended, open_one = lab.submit_one(lab.chain(1)), lab.submit_one(lab.chain(1))
    lab.one.call("cancel", {"task": ended})

    assert register(lab, ended, open_one, str(uuid4())) == [open_one]


def test_a_second_program_does_not_take_the_place_of_the_first(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(1))
    register(lab, task)

    assert register(lab, task, waiter=new_uuid()) == []
    assert str(lab.task(task).waiter) == WAITER


def test_registering_waits_for_nobody_who_changes_the_task(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(1))
    with lab.transaction(lab.one):
        lab.one.call("cancel", {"task": task})
        assert register(lab, task) == []
    assert register(lab, task) == []


class _Away(Connection):
    """A database that takes no notices at first."""

    refusals = 1

    async def execute(self, statement: str, params: Params = None) -> Rows:
        if self.refusals:
            self.refusals -= 1
            return await super().execute("select 1 / 0")
        return await super().execute(statement, params)


async def test_what_could_not_be_told_is_told_the_next_time(lab: Lab) -> None:
    ears, connection = ears_of(lab), _Away(lab.url)
    notices, task = WaiterNotifications(connection), str(uuid4())
    notices.note({task: WAITER})

    await notices.flush()
    assert heard(ears) == []
    await notices.flush()
    await notices.flush()

    assert heard(ears) == [task]
    await connection.close()


async def test_notices_that_cannot_be_told_are_bounded_and_the_program_in_the_process_gets_none(lab: Lab) -> None:
    ears, connection = ears_of(lab), Connection(lab.url)
    mine, last = new_uuid(), str(uuid4())
    notices = WaiterNotifications(connection, own=mine)
    notices.note({str(uuid4()): mine, **{str(uuid4()): WAITER for _ in range(MOST)}})
    notices.note({last: WAITER})

    await notices.flush()

    told = ",".join(heard(ears)).split(",")
    assert len(told) == MOST
    assert last in told
    await connection.close()
