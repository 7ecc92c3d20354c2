"""Rule 15: cancelling ends a task and its open steps at once, and nothing that was under way brings them back."""

from __future__ import annotations

from uuid import uuid4

import psycopg
import pytest

from tests.support.engine_fixture import Lab, fail, new_step, ok, operator, retry, verdict
from tests.support.random_plans import Spec, StepType


def cancel(lab: Lab, task: str) -> dict[str, object]:
    return lab.two.call("cancel", {"task": task, "reason": "changed my mind", "actor": "ada"})


def test_every_open_step_is_cancelled_and_its_token_grows(lab: Lab) -> None:
    plan = lab.plan(Spec("done"), Spec("runs"), Spec("fails"), Spec("again"), Spec("waits", depends_on=("runs",)))
    task, claims = lab.running(plan)
    lab.one.advance(ok(claims["done"]), fail(claims["fails"]), retry(claims["again"]))
    before = lab.steps(task)

    answer = cancel(lab, task)

    assert lab.states(task) == {"done": "complete", **dict.fromkeys(("runs", "fails", "again", "waits"), "cancelled")}
    grown = {name for name, row in lab.steps(task).items() if row.claim_token > before[name].claim_token}
    assert grown == {"runs", "fails", "again", "waits"}
    assert [run["step"] for run in answer["running"]] == [claims["runs"]["step"]]  # type: ignore[attr-defined]
    assert lab.task_paths(task)[-1].endswith(">cancelled")
    details = lab.observer.rows("select cancel_reason from tasker.task_details where task_uuid = %s", task)
    assert details[0].cancel_reason == "changed my mind"


def test_a_final_task_is_not_cancelled(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    lab.one.finish(claims["s0"])

    assert cancel(lab, task) == {"cancelled": False, "state": "complete", "sent": {}}
    assert lab.states(task) == {"s0": "complete"}


def test_cancelling_twice_is_answered_by_the_state(lab: Lab) -> None:
    task = lab.submit_one(lab.chain())
    cancel(lab, task)
    rows = lab.steps(task)

    assert cancel(lab, task)["cancelled"] is False
    assert lab.steps(task) == rows


def test_an_unknown_task_is_not_cancelled(lab: Lab) -> None:
    assert cancel(lab, "00000000-0000-7000-8000-000000000000")["cancelled"] is False


def test_a_cancel_that_comes_first_leaves_a_dead_hint(lab: Lab) -> None:
    task = lab.submit_one(lab.chain())

    with lab.transaction(lab.two):
        cancel(lab, task)
        claim = lab.later(lab.one.claim_answer)
        lab.waits(claim, lab.one, on=lab.two)

    answer = claim.result(timeout=30)
    assert (answer.get("claims"), answer["dead"], answer["popped"]) == (None, 1, 1)
    assert set(lab.states(task).values()) == {"cancelled"}


def test_a_cancel_that_comes_second_waits_for_the_claim_and_takes_it_away(lab: Lab) -> None:
    task = lab.submit_one(lab.chain())

    with lab.transaction(lab.one):
        (claim,) = lab.one.claim()
        cancelling = lab.later(cancel, lab, task)
        lab.waits(cancelling, lab.two, on=lab.one)

    (running,) = cancelling.result(timeout=30)["running"]
    assert (running["step"], running["token"]) == (claim["step"], claim["token"])
    assert verdict(lab.one.finish(claim), claim) == "cancelled"


def test_a_result_that_comes_after_the_cancel_creates_and_enqueues_nothing(lab: Lab) -> None:
    task, claims = lab.running(lab.chain())
    depth = lab.queue_depth()

    with lab.transaction(lab.two):
        cancel(lab, task)
        late = lab.later(lab.one.finish, claims["s0"], slots=5)
        lab.waits(late, lab.one, on=lab.two)

    answer = late.result(timeout=30)
    assert verdict(answer, claims["s0"]) == "cancelled"
    assert not answer.get("claims")
    assert set(lab.states(task).values()) == {"cancelled"}
    assert lab.queue_depth() == depth


def test_a_result_that_comes_before_the_cancel_counts_and_its_child_is_cancelled(lab: Lab) -> None:
    task, claims = lab.running(lab.chain())

    with lab.transaction(lab.one):
        lab.one.finish(claims["s0"])
        cancelling = lab.later(cancel, lab, task)
        lab.waits(cancelling, lab.two, on=lab.one)
    cancelling.result(timeout=30)

    assert lab.states(task) == {"s0": "complete", "s1": "cancelled"}
    assert lab.one.claim_answer()["dead"] == 1, "the hint to the child finds nothing to claim"


def test_an_expansion_that_comes_after_the_cancel_creates_nothing(lab: Lab) -> None:
    plan = lab.plan(Spec("choice", StepType.DECISION), Spec("a", depends_on=("choice",)))
    task, claims = lab.running(plan)

    with lab.transaction(lab.two):
        cancel(lab, task)
        late = lab.later(lab.one.advance, ok(claims["choice"], gv=0, x=[new_step(plan, "a", "choice")]))
        lab.waits(late, lab.one, on=lab.two)

    assert verdict(late.result(timeout=30), claims["choice"]) == "cancelled"
    assert lab.states(task) == {"choice": "cancelled"}


def test_an_expansion_that_comes_before_the_cancel_is_cancelled_with_all_its_steps(lab: Lab) -> None:
    plan = lab.plan(Spec("choice", StepType.DECISION), Spec("a", depends_on=("choice",)))
    task, claims = lab.running(plan)

    with lab.transaction(lab.one):
        lab.one.advance(ok(claims["choice"], gv=0, x=[new_step(plan, "a", "choice")]))
        cancelling = lab.later(cancel, lab, task)
        lab.waits(cancelling, lab.two, on=lab.one)
    cancelling.result(timeout=30)

    assert lab.states(task) == {"choice": "complete", "a": "cancelled"}
    assert (lab.task(task).total, lab.task(task).cancelled) == (2, 1)


def test_a_retry_that_is_due_is_not_promoted_in_a_cancelled_task(lab: Lab) -> None:
    task, claims = lab.running(lab.chain(1))
    lab.one.advance(retry(claims["s0"], delay_ms=0))

    with lab.transaction(lab.two):
        cancel(lab, task)
        assert not lab.one.call("due", lab.one.args()).get("promoted"), "the task is locked: left for the next turn"
    assert not lab.one.call("due", lab.one.args()).get("promoted")

    assert lab.states(task) == {"s0": "cancelled"}


def test_held_steps_of_a_cancelled_task_leave_the_backlog(lab: Lab) -> None:
    lab.window = 0
    task = lab.submit_one(lab.plan(Spec("a"), Spec("b")))
    assert lab.task(task).held == 2

    cancel(lab, task)

    count = lab.observer.value("select count(*) from tasker.ready_backlog where task_uuid = %s", task)
    assert (count, lab.task(task).held) == (0, 0)


@pytest.mark.parametrize("kind", ["reset", "resolve", "complete"])
def test_no_operator_s_action_brings_a_cancelled_task_back(lab: Lab, kind: str) -> None:
    task = lab.submit_one(lab.chain())
    cancel(lab, task)

    answer = lab.one.advance(operator(kind, lab.steps(task)["s0"]))

    assert set(answer["verdicts"].values()) == {"cancelled"}
    assert lab.task(task).state == "cancelled"


def test_those_who_run_the_task_are_notified_by_the_commit(lab: Lab) -> None:
    task, _ = lab.running(lab.chain())
    listener = lab.session().connection
    listener.execute("listen tasker_cancelled")

    with lab.transaction(lab.two):
        cancel(lab, task)
        assert not list(listener.notifies(timeout=0)), "not before the commit"
    (heard,) = _hear(listener, 1)
    assert (heard.channel, heard.payload) == ("tasker_cancelled", task)


def _hear(connection: psycopg.Connection[object], count: int) -> list[psycopg.Notify]:
    return list(connection.notifies(timeout=30, stop_after=count))


def test_whoever_waits_for_the_task_s_end_is_named_to_who_cancels_and_is_told_nothing_by_the_commit(lab: Lab) -> None:
    """A notification in the transaction would hold up the commits of everybody; it is sent behind it."""
    task, waiter = lab.submit_one(lab.chain(1)), str(uuid4())
    lab.one.execute("update tasker.tasks set waiter = %s where task_uuid = %s", waiter, task)
    listener = lab.session().connection
    listener.execute(f'listen "tasker_done_{waiter}"'.encode())

    assert cancel(lab, task)["waiters"] == {task: waiter}

    listener.execute("select 1")
    assert not list(listener.notifies(timeout=0))
