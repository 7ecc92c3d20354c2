"""Parked results whose rows somebody keeps locked: they come again and hold up no others, however long that takes."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from tasker.engine.plans import PlanStore
from tasker.handlers.claims import Failure
from tasker.orchestration import results
from tasker.orchestration.parked_results import LATER_SECONDS
from tasker.orchestration.sweep import Sweeper
from tests.integration.engine.protocol.conftest import at_once, result_of
from tests.integration.engine.protocol.messages.test_parked_batches import Queued, parked_tasks, queued, waiting
from tests.support.engine_fixture import Item, Lab
from tests.support.random_plans import Spec, StepType, create_steps

__all__ = ["queued"]


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody waits for long."""
    monkeypatch.setattr(results, "LOCK_MS", 50)
    monkeypatch.setattr(results, "PASSING_MS", 50)


@contextmanager
def kept(lab: Lab, *steps: str, table: str = "workflow_steps", key: str = "workflow_step_uuid") -> Iterator[None]:
    """A person's transaction in a console has these rows."""
    with lab.transaction(lab.two):
        lab.two.execute(f"select from tasker.{table} where {key} = any (%s::uuid[]) for update", list(steps))
        yield


async def all_ended(queued: Queued, claims: list[Item]) -> None:
    """Look until these tasks have ended; messages that were put off are due at once."""
    async with asyncio.timeout(60):
        while any(not queued.lab.task(claim["task"]).complete for claim in claims):
            await queued.receive()
            queued.due("0 seconds")


async def test_the_message_of_a_task_that_somebody_keeps_comes_again_and_counts_as_no_repair(queued: Queued) -> None:
    lab = queued.lab
    held, free = parked_tasks(queued, 2)
    await queued.park(*(result_of(lab.chain(1), claim) for claim in (held, free)))

    with kept(lab, held["task"], table="tasks", key="task_uuid"):
        assert await queued.receive() == 2
        assert [lab.task(claim["task"]).state for claim in (held, free)] == ["steps_in_process", "complete"]
        assert await waiting(queued) == 1
        assert queued.results.longest_pause() == LATER_SECONDS, "nobody announces it"
        assert not await queued.sweep(), "passed over, and not counted"
    queued.due("1 hour")
    assert await queued.receive() == 0, "not yet"
    assert queued.results.longest_pause() == LATER_SECONDS

    queued.due("0 seconds")
    assert await queued.receive() == 1, "only what was put off"

    assert lab.task(held["task"]).state == "complete"
    assert (await waiting(queued), queued.results.longest_pause()) == (0, 36_000)
    assert not await queued.sweep()


async def test_results_of_a_task_that_somebody_keeps_for_long_hold_up_no_others_when_they_come_again(
    queued: Queued, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Waiting for its lock anew would take as long as it is kept, each time."""
    lab = queued.lab
    *held, new = parked_tasks(queued, 4)
    for claim in held:
        await queued.park(result_of(lab.chain(1), claim))

    with kept(lab, *(claim["task"] for claim in held), table="tasks", key="task_uuid"):
        assert await queued.receive() == 3
        monkeypatch.setattr(results, "LOCK_MS", 3_600_000)
        await queued.park(result_of(lab.chain(1), new))
        queued.due("0 seconds")
        await all_ended(queued, [new])
        assert {lab.task(claim["task"]).state for claim in held} == {"steps_in_process"}

    await all_ended(queued, held)


async def test_what_another_process_had_in_hand_when_it_ended_waits_for_no_lock(
    queued: Queued, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of these messages comes alone: they would wait one after the other."""
    lab = queued.lab
    *held, free = parked_tasks(queued, 4)
    for claim in (*held, free):
        await queued.park(result_of(lab.chain(1), claim))
    lab.observer.execute("update pgmq.q_orchestration_step_results set read_ct = 1")
    monkeypatch.setattr(results, "LOCK_MS", 3_600_000)

    with kept(lab, *(claim["task"] for claim in held), table="tasks", key="task_uuid"):
        await all_ended(queued, [free])

    await all_ended(queued, held)


async def test_further_results_of_a_task_that_somebody_keeps_wait_for_it_no_more(
    queued: Queued, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hundreds of its steps may end meanwhile, one after the other."""
    lab = queued.lab
    plan = lab.plan(Spec("first"), Spec("second"))
    wide, claims = lab.running(plan)
    (other,) = parked_tasks(queued, 1)
    await queued.park(result_of(plan, claims["first"]))
    await queued.engine.connection.execute("set statement_timeout = '1h'")

    with kept(lab, wide, table="tasks", key="task_uuid"):
        await queued.receive()
        monkeypatch.setattr(results, "LOCK_MS", 3_600_000)
        await queued.park(result_of(plan, claims["second"]), result_of(lab.chain(1), other))
        await all_ended(queued, [other])

    await all_ended(queued, [claims["first"]])


async def test_one_wait_in_vain_is_enough_for_all_decisions_of_a_batch(
    queued: Queued, caplog: pytest.LogCaptureFixture
) -> None:
    """Each is written by itself: five hundred would wait one after the other."""
    lab = queued.lab
    plan = lab.plan(Spec("choice", StepType.DECISION), Spec("a", depends_on=("choice",)))
    lab.submit(plan, *({} for _ in range(4)))
    *held, free = lab.one.claim()
    await queued.park(*(result_of(plan, claim, create_steps("a")) for claim in (*held, free)))

    with kept(lab, *(claim["task"] for claim in held), table="tasks", key="task_uuid"):
        await queued.receive()
        assert lab.states(free["task"]) == {"choice": "complete", "a": "enqueued"}
        assert {lab.states(claim["task"])["choice"] for claim in held} == {"enqueued_for_orchestration"}
    assert [line.split()[:2] for line in caplog.messages] == [["parked_results_deferred", "tasks=1"]]


@pytest.mark.parametrize("row", ["the step", "a step behind it"])
async def test_a_step_that_somebody_locks_holds_up_no_other_result(
    queued: Queued, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, row: str
) -> None:
    """A person's transaction in a console: no lock of its task tells of it. However often it comes, it is not worn."""
    lab = queued.lab
    plan = lab.chain(2)
    lab.submit(plan, *({} for _ in range(4)))
    held, *free = lab.one.claim()
    await queued.park(*(result_of(plan, claim) for claim in (held, *free)))
    locked = lab.steps(held["task"])["s0" if row == "the step" else "s1"].workflow_step_uuid

    with kept(lab, str(locked)):
        await queued.receive()
        assert [lab.states(claim["task"])["s0"] for claim in free] == ["complete"] * 3, "in the same look"
        monkeypatch.setattr(results, "LOCK_MS", 3_600_000)
        monkeypatch.setattr(results, "PASSING_MS", 3_600_000)
        async with asyncio.timeout(60):
            for _ in range(20):
                queued.due("0 seconds")
                assert await queued.receive() == 1
        assert lab.states(held["task"])["s0"] == "enqueued_for_orchestration"
    assert [line.split()[:2] for line in caplog.messages] == [["parked_results_deferred", "tasks=1"]]

    queued.due("0 seconds")
    await queued.receive()
    assert lab.states(held["task"]) == {"s0": "complete", "s1": "enqueued"}
    assert await waiting(queued) == 0
    lab.check()


async def test_hundreds_of_results_that_wait_for_one_row_are_looked_at_together(queued: Queued) -> None:
    """What they all lead to is locked. Alone, each of them would be a write, again and again."""
    lab = queued.lab
    names = [f"s{number}" for number in range(40)]
    plan = lab.plan(*map(Spec, names), Spec("end", depends_on=tuple(names)))
    task, claims = lab.running(plan)
    await queued.park(*(result_of(plan, claims[name]) for name in names))

    with kept(lab, str(lab.steps(task)["end"].workflow_step_uuid)):
        await queued.receive()
        assert await waiting(queued) == 2
        for _ in range(10):
            queued.due("0 seconds")
            assert await queued.receive() == 40
    queued.due("0 seconds")
    await queued.receive()

    assert lab.states(task) == dict.fromkeys(names, "complete") | {"end": "enqueued"}
    lab.check()


async def test_a_failure_is_ended_though_somebody_keeps_what_is_behind_its_step(queued: Queued) -> None:
    """Nothing is counted down there."""
    lab = queued.lab
    plan = lab.chain(2)
    task, claims = lab.running(plan)
    await queued.park(result_of(plan, claims["s0"], failure=Failure("no", "X", retryable=False)))

    with kept(lab, str(lab.steps(task)["s1"].workflow_step_uuid)):
        await queued.receive()

    assert lab.states(task)["s0"] == "error"


def keep_for_long(queued: Queued, step: str, state: str) -> None:
    """Whoever brings the step there waits too long for something of it."""
    queued.lab.observer.execute("""
      create or replace function tasker.kept_for_long() returns trigger language plpgsql as $$ begin
        raise exception 'too long' using errcode = 'lock_not_available'; end $$""")
    queued.lab.observer.execute(
        "create trigger kept_for_long before update on tasker.workflow_steps for each row when "
        f"(new.workflow_step_uuid = '{step}' and new.state = '{state}') execute function tasker.kept_for_long()"
    )


async def test_where_nobody_knows_which_result_waits_each_comes_again_alone(
    queued: Queued, caplog: pytest.LogCaptureFixture
) -> None:
    lab = queued.lab
    held, *free = parked_tasks(queued, 4)
    await queued.park(*(result_of(lab.chain(1), claim) for claim in (held, *free)))
    keep_for_long(queued, held["step"], "complete")

    await queued.receive()
    assert caplog.messages[0].startswith("parked_results_deferred steps=4 reason=")
    queued.due("0 seconds")
    await all_ended(queued, free)

    assert lab.states(held["task"])["s0"] == "enqueued_for_orchestration"
    lab.observer.execute("drop trigger kept_for_long on tasker.workflow_steps")
    await all_ended(queued, [held])


def one_by_one(queued: Queued) -> Queued:
    """A slice of its sweeps is a task."""
    engine, slices = queued.engine, at_once(slice=1)
    sweeper = Sweeper(engine, queued.processor, PlanStore(engine.connection), random.Random(2), slices)
    return replace(queued, sweeper=sweeper)


async def test_a_sweep_repairs_what_is_beside_a_row_that_somebody_locks(queued: Queued) -> None:
    """A person's transaction in a console holds a step. It is of the same slice."""
    lab = queued.lab
    held, free = parked_tasks(queued, 2)
    lab.observer.execute("update tasker.workers set lease_until = '-infinity'")

    with kept(lab, held["step"]):
        assert await queued.sweep() == {"lost_worker": 1}
    assert lab.states(free["task"])["s0"] == "waiting_for_retry"
    assert await queued.sweep() == {"lost_worker": 1}


async def test_a_sweep_goes_on_beside_a_slice_that_takes_too_long(
    queued: Queued, caplog: pytest.LogCaptureFixture
) -> None:
    lab = queued.lab
    held, free = sorted(parked_tasks(queued, 2), key=lambda claim: str(claim["task"]))
    lab.observer.execute("update tasker.workers set lease_until = '-infinity'")
    keep_for_long(queued, held["step"], "waiting_for_retry")

    assert await one_by_one(queued).sweep() == {"lost_worker": 1}

    assert lab.states(free["task"])["s0"] == "waiting_for_retry"
    assert any(line.startswith("sweep_skipped steps=1") for line in caplog.messages)
    lab.observer.execute("drop trigger kept_for_long on tasker.workflow_steps")
    assert await one_by_one(queued).sweep() == {"lost_worker": 1}


async def test_a_sweep_is_patient_with_a_step_whose_message_was_put_off(queued: Queued) -> None:
    lab = queued.lab
    (claim,) = parked_tasks(queued, 1)
    await queued.park(result_of(lab.chain(1), claim))
    lab.observer.execute("update tasker.workflow_steps set hinted_at = hinted_at - interval '1 hour'")
    found = {"limit": 10, "park_grace_ms": 60_000}
    assert lab.one.core("sweep", found).get("parked")

    with kept(lab, claim["task"], table="tasks", key="task_uuid"):
        await queued.receive()

    assert not lab.one.core("sweep", found).get("parked")
