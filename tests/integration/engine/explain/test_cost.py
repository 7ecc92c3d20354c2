"""What explaining costs: it grows with the steps that have not ended, and equal reasons are one group."""

from __future__ import annotations

from typing import Any

from tests.integration.engine.explain.conftest import RESULTS_QUEUE, Told, at_work
from tests.support.engine_fixture import Item, Lab, new_step, ok, retry
from tests.support.fleets.work import FACTOR, Work, assert_linear, work_of
from tests.support.random_plans import BATCHABLE, DEFERRED, WORKER, Spec

SMALL = 60
LARGE = SMALL * FACTOR


def batches(lab: Lab) -> Any:
    return lab.plan(Spec("cut", BATCHABLE), Spec("work", WORKER, ("cut",)), Spec("sum", DEFERRED, ("work",)))


def cut(lab: Lab, count: int) -> str:
    """A task with so many batch workers in the queue, and a step that waits for them all."""
    plan = batches(lab)
    task, claims = lab.running(plan)
    workers: list[Item] = [
        {**new_step(plan, "work", "cut"), "name": f"work_{i:05}", "inputs": {"n": i}, "batch": True}
        for i in range(count)
    ]
    joined = new_step(plan, "sum", *(str(worker["name"]) for worker in workers))
    lab.one.advance(ok(claims["cut"], gv=0, x=[*workers, joined]))
    return task


def explained(lab: Lab, task: str) -> Work:
    return work_of(lab.one, lambda: lab.one.core("explain", {"task": task, "results_queue": RESULTS_QUEUE}))


def test_the_work_grows_with_the_steps_and_no_faster(told: Told) -> None:
    def waiting(count: int) -> Work:
        work = explained(told.lab, cut(told.lab, count))
        told.lab.one.run_all()
        return work

    assert_linear(waiting(SMALL), waiting(LARGE))


def test_it_reads_nothing_of_other_tasks(told: Told) -> None:
    lab = told.lab
    lab.window = 5
    task, claims = lab.running(lab.plan(*(Spec(f"s{i}") for i in range(4)), Spec("end", depends_on=("s0",))))
    lab.one.advance(*(retry(claim, delay_ms=60_000) for claim in list(claims.values())[1:]))
    alone = explained(lab, task)

    lab.submit(lab.chain(2), *({} for _ in range(400)))
    for _ in range(100):
        lab.one.finish(*lab.one.claim(2))
    beside = explained(lab, task)

    assert beside.rows <= alone.rows * 1.2 + 20, beside.heaviest


def test_retries_with_failures_of_their_own_grow_no_faster_either(told: Told) -> None:
    def failing(count: int) -> str:
        task = cut(told.lab, count)
        for number, claim in enumerate(told.lab.one.claim(count)):
            error = {"message": f"row {number}", "error_type": "TestError", "retryable": True}
            told.lab.one.advance(retry(claim, delay_ms=60_000, e=error))
        return task

    assert_linear(explained(told.lab, failing(SMALL)), explained(told.lab, failing(LARGE)))


def test_steps_with_the_same_reason_are_one_group_with_the_first_names(told: Told) -> None:
    at_work(told.lab.one, "w1")
    task = cut(told.lab, 20)

    found = {each.reason: each for each in told.task(task, names=3).reasons}

    assert (found["queued"].count, found["queued"].steps) == (20, ["work_00000", "work_00001", "work_00002"])
    assert set(found["queued"].of) == {"work"}
    assert told.sentence(task, "sum").startswith("waits for work_00000, work_00001, ")
    assert told.sentence(task, "sum").endswith(" and 15 more")


def test_the_instances_of_a_batch_worker_are_found_by_its_name(told: Told) -> None:
    at_work(told.lab.one, "w1")

    (found,) = told.task(cut(told.lab, 7), "work").reasons

    assert (found.reason, found.count) == ("queued", 7)


def test_of_more_reasons_than_are_wanted_it_is_told_how_many_are_left_out(told: Told) -> None:
    task, claims = told.lab.running(told.lab.plan(*(Spec(f"s{i}") for i in range(6))))
    for number, claim in enumerate(claims.values()):
        told.lab.one.advance(retry(claim, delay_ms=1000 * number + 60_000, e={"message": str(number)}))

    found = told.task(task, groups=4)

    assert (len(found.reasons), found.more) == (4, 2)
