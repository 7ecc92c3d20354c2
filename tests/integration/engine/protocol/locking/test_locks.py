"""Rule 1: tasks are locked in order, then steps in order; what follows is read after the lock was got."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.support.engine_fixture import Item, Lab, Session, ok, operator, verdict
from tests.support.random_plans import Spec

DIAMOND = (Spec("a"), Spec("b", depends_on=("a",)), Spec("c", depends_on=("a",)), Spec("d", depends_on=("b", "c")))


def test_batches_that_name_the_same_tasks_crosswise_do_not_deadlock(lab: Lab) -> None:
    """Each of 30 rounds writes the same ten tasks from two connections, one batch in reverse order of the other."""
    plan = lab.plan(*(Spec(name) for name in ("left", "right")))
    for _ in range(30):
        tasks = lab.submit(plan, *({} for _ in range(10)))
        claims = {(claim["task"], claim["name"]): claim for claim in lab.one.claim()}
        left = [ok(claims[task, "left"]) for task in tasks]
        right = [ok(claims[task, "right"]) for task in reversed(tasks)]
        together = threading.Barrier(2)

        def bring(session: Session, items: list[Item], barrier: threading.Barrier = together) -> None:
            barrier.wait()
            assert not session.advance(*items).get("verdicts")

        with ThreadPoolExecutor(2) as pool:
            list(pool.map(bring, (lab.one, lab.two), (left, right)))
        assert {lab.task(task).state for task in tasks} == {"complete"}


def test_cancels_and_batches_over_the_same_tasks_do_not_deadlock(lab: Lab) -> None:
    plan = lab.plan(*(Spec(f"s{i}") for i in range(4)))
    for _ in range(10):
        tasks = lab.submit(plan, *({} for _ in range(6)))
        items = [ok(claim) for claim in lab.one.claim()]
        together = threading.Barrier(2)

        def cancel(session: Session, ids: list[str], barrier: threading.Barrier = together) -> None:
            barrier.wait()
            for task in reversed(ids):
                session.call("cancel", {"task": task})

        def bring(session: Session, batch: list[Item], barrier: threading.Barrier = together) -> None:
            barrier.wait()
            session.advance(*batch)

        futures = [lab.later(cancel, lab.two, tasks), lab.later(bring, lab.one, items)]
        for future in futures:
            future.result(timeout=60)
        assert {lab.task(task).complete for task in tasks} == {True}


def test_a_batch_waits_for_the_task_and_then_sees_what_the_other_wrote(lab: Lab) -> None:
    """Two parents of one child finish in two transactions: the second must count the first one's work."""
    task, claims = lab.running(lab.plan(*DIAMOND))
    lab.one.finish(claims["a"])
    middle = {claim["name"]: claim for claim in lab.one.claim()}

    with lab.transaction(lab.one):
        lab.one.finish(middle["b"])
        second = lab.later(lab.two.finish, middle["c"])
        lab.waits(second, lab.two, on=lab.one)
    second.result(timeout=30)

    assert lab.states(task)["d"] == "enqueued"
    assert lab.step_paths(task, "d") == ["pending>enqueued"], "ready exactly once"
    assert lab.queue_depth() == 1


def test_two_parents_in_one_batch_count_twice(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(*DIAMOND))
    lab.one.finish(claims["a"])
    lab.one.finish(*lab.one.claim())

    step = lab.steps(task)["d"]
    assert (step.unmet, step.state) == (0, "enqueued")
    assert lab.step_paths(task, "d") == ["pending>enqueued"]


def test_a_task_whose_last_steps_end_in_two_transactions_is_finished_by_the_second(lab: Lab) -> None:
    task, claims = lab.running(lab.plan(Spec("a"), Spec("b")))

    with lab.transaction(lab.one):
        lab.one.finish(claims["a"])
        second = lab.later(lab.two.finish, claims["b"])
        lab.waits(second, lab.two, on=lab.one)

    assert second.result(timeout=30)["finished"] == {task: "complete"}
    assert lab.task(task).state == "complete"


def test_a_locked_task_is_answered_busy_and_the_rest_of_the_batch_goes_on(lab: Lab) -> None:
    plan = lab.plan(Spec("a"), Spec("b"))
    held, free = lab.submit(plan, {}, {})
    claims = {(claim["task"], claim["name"]): claim for claim in lab.one.claim()}

    with lab.transaction(lab.one):
        lab.one.finish(claims[held, "a"])
        answer = lab.two.finish(claims[held, "b"], claims[free, "a"], claims[free, "b"], wait=False)
        assert verdict(answer, claims[held, "b"]) == "busy"
        assert answer["finished"] == {free: "complete"}
    assert not lab.refused(held), "busy is no refusal"

    assert lab.two.finish(claims[held, "b"], wait=False)["finished"] == {held: "complete"}


def test_a_claim_waits_for_a_locked_step_instead_of_skipping_it(lab: Lab) -> None:
    """Its message is taken: a step that was skipped would have none."""
    task = lab.submit_one(lab.chain(1))

    with lab.transaction(lab.one):
        lab.one.execute("select from tasker.workflow_steps where task_uuid = %s for update", task)
        claim = lab.later(lab.two.claim)
        lab.waits(claim, lab.two, on=lab.one)
    (claimed,) = claim.result(timeout=30)

    assert claimed["task"] == task
    lab.two.finish(claimed)


def test_a_claim_takes_no_lock_on_the_task(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(1))

    with lab.transaction(lab.one):
        lab.one.execute("select from tasker.tasks where task_uuid = %s for update", task)
        (claimed,) = lab.two.claim()
    lab.two.finish(claimed)


def test_two_claims_of_the_same_hint_give_one_claim(lab: Lab) -> None:
    """A doubled message: the second claim waits for the first and finds the step gone."""
    task = lab.submit_one(lab.chain(1))
    hint = str(lab.steps(task)["s0"].workflow_step_uuid)

    with lab.transaction(lab.one):
        (first,) = lab.one.core("claim", lab.one.args(steps=[hint]))["claims"]
        second = lab.later(lab.two.core, "claim", lab.two.args(steps=[hint]))
        lab.waits(second, lab.two, on=lab.one)

    answer = second.result(timeout=30)
    assert not answer.get("claims")
    assert answer["dead"] == 1
    assert (lab.steps(task)["s0"].claim_token, str(lab.steps(task)["s0"].worker_uuid)) == (
        first["token"],
        lab.one.worker,
    )
    lab.one.finish(first)


@pytest.mark.parametrize(
    ("function", "more"),
    [
        ("claim", {"steps": ["00000000-0000-7000-8000-000000000001"]}),
        ("advance", {"items": []}),
        ("cancel", {"task": "00000000-0000-7000-8000-000000000000"}),
        ("park", {"items": []}),
        ("evaluate", {"tasks": []}),
        ("submit", {"template": 0, "tasks": []}),
    ],
)
@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
def test_a_change_refuses_any_isolation_but_read_committed(lab: Lab, isolation: str, function: str, more: Item) -> None:
    """A statement must see what others committed while it waited."""
    lab.one.execute(f"begin isolation level {isolation}")
    with pytest.raises(psycopg.errors.RaiseException, match=f"needs READ COMMITTED, this transaction is {isolation}"):
        lab.one.core(function, lab.one.args(**more))
    lab.one.execute("rollback")


def test_the_caller_s_default_isolation_is_named_in_the_refusal(lab: Lab) -> None:
    session = lab.session(options="-c default_transaction_isolation=serializable")
    task = lab.submit_one(lab.chain(1))

    with pytest.raises(psycopg.errors.RaiseException, match="serializable"):
        session.advance(operator("resolve", lab.steps(task)["s0"]))
    assert lab.states(task) == {"s0": "enqueued"}
