"""Pauses that begin and end at once, beside cancels and releases: nothing is held for ever, nobody deadlocks."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.engine.protocol.messages.test_wakeups import heard, listener
from tests.support.engine_fixture import Answer, Lab, Session
from tests.support.lock_order import locks_in_order
from tests.support.random_plans import Spec

WHY = {"actor": "ops", "reason": "the provider is down"}
BACKLOG = "tasker.ready_backlog"


def pause(session: Session, **target: Any) -> Answer:
    return session.call("pause", {"namespace": session.lab.namespace, **WHY, **target})


def resume(session: Session, **target: Any) -> Answer:
    return session.call("resume", {"namespace": session.lab.namespace, **WHY, **target})


def marks(lab: Lab) -> list[bool]:
    query = "select paused from tasker.ready_backlog where namespace_id = %s"
    return [row.paused for row in lab.observer.rows(query, lab.namespace_id)]


def held_steps(lab: Lab, task: str) -> list[str]:
    """Nine roots of one task, held for want of room."""
    return [str(row.workflow_step_uuid) for row in lab.steps(task).values()]


def nine_held(lab: Lab) -> tuple[str, list[str]]:
    lab.window = 0
    task = lab.submit_one(lab.plan(*(Spec(f"s{n}") for n in range(9))))
    return task, held_steps(lab, task)


def test_of_two_pauses_that_end_at_the_same_moment_the_later_lets_the_step_go(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(1))
    pause(lab.one)
    pause(lab.one, task=task)
    lab.one.claim_answer()

    with lab.transaction(lab.one):
        assert resume(lab.one)["held"] == 0
        other = lab.later(resume, lab.two, task=task)
        lab.waits(other, lab.two, on=lab.one)

    assert other.result(timeout=30)["held"] == 1
    assert marks(lab) == [False]
    assert lab.one.call("backlog", lab.one.args())["released"] == 1
    assert lab.one.run_all() == 1


def test_a_pause_that_begins_while_another_ends_holds_what_the_other_held(lab: Lab) -> None:
    task = lab.submit_one(lab.chain(1))
    pause(lab.one)
    lab.one.claim_answer()

    with lab.transaction(lab.one):
        pause(lab.one, task=task)
        ended = lab.later(resume, lab.two)
        lab.waits(ended, lab.two, on=lab.one)

    assert ended.result(timeout=30)["held"] == 0
    assert marks(lab) == [True]
    assert resume(lab.one, task=task)["held"] == 1


def test_pauses_of_two_namespaces_do_not_wait_for_each_other(lab: Lab) -> None:
    other = Lab(lab.url)
    try:
        for each in (lab, other):
            each.submit_one(each.chain(1))
        with lab.transaction(lab.one):
            pause(lab.one)
            assert pause(other.one)["paused"]
            assert resume(other.one)["resumed"]
    finally:
        other.close()


def test_a_pause_that_somebody_else_has_just_ended_is_not_ended_twice(lab: Lab) -> None:
    lab.submit_one(lab.chain(1))
    pause(lab.one)

    with lab.transaction(lab.one):
        resume(lab.one)
        second = lab.later(resume, lab.two)
        lab.waits(second, lab.two, on=lab.one)

    assert second.result(timeout=30)["resumed"] is False


def test_a_pause_locks_held_steps_in_order(lab: Lab) -> None:
    _, steps = nine_held(lab)

    assert locks_in_order(lab, BACKLOG, steps, lab.one, lambda: pause(lab.one, template="flow"))["paused"]
    assert marks(lab) == [True] * 9


def test_a_resumption_locks_held_steps_in_order(lab: Lab) -> None:
    _, steps = nine_held(lab)
    pause(lab.one, template="flow")

    assert locks_in_order(lab, BACKLOG, steps, lab.one, lambda: resume(lab.one, template="flow"))["held"] == 9


def test_a_cancel_locks_held_steps_in_order(lab: Lab) -> None:
    task, steps = nine_held(lab)

    answer = locks_in_order(lab, BACKLOG, steps, lab.one, lambda: lab.one.call("cancel", {"task": task, **WHY}))

    assert answer["cancelled"]
    assert not marks(lab)


def test_a_release_locks_held_steps_in_order(lab: Lab) -> None:
    _, steps = nine_held(lab)
    lab.window = 100

    answer = locks_in_order(lab, BACKLOG, steps, lab.one, lambda: lab.one.call("backlog", lab.one.args()))

    assert answer["released"] == 9


def test_noting_hints_locks_steps_in_order(lab: Lab) -> None:
    task = lab.submit_one(lab.plan(*(Spec(f"s{n}") for n in range(9))))
    steps = held_steps(lab, task)

    answer = locks_in_order(
        lab, "tasker.workflow_steps", steps, lab.one,
        lambda: lab.one.core("wakeups_sent", {"steps": steps[::-1]}),
    )  # fmt: skip

    assert len(answer["send"]) == 9


@pytest.mark.parametrize("deed", ["cancel", "resume"])
def test_a_cancel_and_a_resumption_that_meet_both_succeed(lab: Lab, deed: str) -> None:
    """One waits in the middle of the held steps for a third; the other runs into it."""
    task, steps = nine_held(lab)
    pause(lab.one, template="flow")
    calls = {
        "cancel": lambda session: session.call("cancel", {"task": task, **WHY}),
        "resume": lambda session: resume(session, template="flow"),
    }
    first, second = calls.pop(deed), calls.popitem()[1]
    third = lab.session()
    with lab.transaction(third):
        third.execute("select from tasker.ready_backlog where workflow_step_uuid = %s for update", sorted(steps)[4])
        one = lab.later(first, lab.one)
        lab.waits(one, lab.one, on=third)
        two = lab.later(second, lab.two)
        lab.waits(two, lab.two, on=lab.one)

    assert one.result(timeout=30)
    assert two.result(timeout=30)
    assert not marks(lab)
    assert lab.task(task).state == "cancelled"


def test_a_resumption_waits_for_a_submission_that_holds_steps_because_of_the_pause(lab: Lab) -> None:
    """Else they would stay held for ever: the submission commits after the pause has ended."""
    plan = lab.chain(1)
    lab.submit(plan)
    lab.one.run_all()
    pause(lab.one, template="chain")

    with lab.transaction(lab.one):
        lab.one.submit(plan, {})
        ended = lab.later(resume, lab.two, template="chain")
        lab.waits(ended, lab.two, on=lab.one)

    assert ended.result(timeout=30)["held"] == 1
    assert marks(lab) == [False]


def test_the_end_of_a_pause_is_announced_to_the_namespace(lab: Lab) -> None:
    """Who waits for work looks at once, and releases what was held."""
    lab.submit_one(lab.chain(1))
    pause(lab.one)
    ears = listener(lab)

    resume(lab.one)

    assert heard(ears) == [f"@{lab.namespace}"]
